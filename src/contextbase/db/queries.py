"""Named queries: the SQL of a layer lives in one `queries.sql`, each query named and described there.

A query starts at a `-- name: some_name` line; comment lines after it describe it.
"""

import re
from collections.abc import Iterator
from importlib.resources import files
from typing import Final

__all__ = ["Queries", "load_queries"]

_NAME: Final = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


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
    """Read `queries.sql` of a package; a name used twice is a programming error."""
    text = (files(package) / "queries.sql").read_text(encoding="utf-8")
    pieces = _NAME.split(text)[1:]
    by_name: dict[str, str] = {}
    for name, body in zip(pieces[::2], pieces[1::2], strict=True):
        if name in by_name:
            raise ValueError(f"{package}/queries.sql has two queries named {name}")
        by_name[name] = body.strip()
    return Queries(by_name)
