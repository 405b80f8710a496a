"""Named queries: the SQL of a layer lives in one `queries.sql`, each query named and described there.

A query starts at a `-- name: some_name` line; comment lines after it describe it. What several queries share is written
once before them, at a `-- part: some_part` line; a line `-- use: some_part` in a query stands for it.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

__all__ = ["Queries", "load_queries"]

_START: Final = re.compile(r"^-- (name|part): (\w+)\s*$", re.MULTILINE)
_USE: Final = re.compile(r"^ *-- use: (\w+)\s*$", re.MULTILINE)


class Queries:
    """The queries of one file, by name: `sql.tree_page`."""

    def __init__(self, by_name: dict[str, str]) -> None:
        self._by_name = by_name

    def __getattr__(self, name: str) -> str:
        try:
            return self._by_name[name]
        except KeyError:
            raise AttributeError(f"there is no query named {name}") from None

    def __iter__(self) -> Iterator[str]:
        return iter(self._by_name)


def load_queries(package: str) -> Queries:
    """Read `queries.sql` of a package. A name used twice, and a part that is missing or that nothing uses, is a
    programming error."""
    text = (files(package) / "queries.sql").read_text(encoding="utf-8")
    pieces = _START.split(text)[1:]
    found: dict[str, dict[str, str]] = {"name": {}, "part": {}}
    used: set[str] = set()
    for kind, name, body in zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True):
        if name in found[kind]:
            raise ValueError(f"{package}/queries.sql has two queries or parts named {name}")
        uses = set(_USE.findall(body))
        if missing := uses - found["part"].keys():
            raise ValueError(f"{package}/queries.sql: query {name} uses {missing.pop()}, which is no part before it")
        used |= uses
        found[kind][name] = _USE.sub(lambda use: found["part"][use[1]], body.strip())
    if unused := found["part"].keys() - used:
        raise ValueError(f"{package}/queries.sql has parts that nothing uses: {', '.join(sorted(unused))}")
    return Queries(found["name"])
