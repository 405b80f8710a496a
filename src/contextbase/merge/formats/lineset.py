"""Files that are a set of lines: requirements (by what is required), ignore lists (by the line)."""

import re
from collections import Counter
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Group, GroupItem, Leaf
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.formats.textlines import lines_of
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution
from contextbase.merge.shared import Shared

__all__ = ["LineSetFormat"]

_REQUIREMENT: Final = re.compile(
    r"([A-Za-z0-9][\w.-]*+)[ \t]*+(?:\[[^\]\n]*\])?+[ \t]*+(?:[=<>!~]=?|===|@[ \t])[^;\n]*(;[^\n#]*)?"
)
_SEPARATORS: Final = re.compile(r"[-_.]+")
_END: Final = "\n"


class LineSetFormat:
    name = "line-set"

    def parse(self, text: str, budget: Budget, _shared: Shared | None = None) -> Group:
        items: list[GroupItem] = []
        seen: Counter[str] = Counter()
        margin = ""
        for line in _logical_lines(text, budget):
            if not line.strip() or line.lstrip().startswith("#"):
                margin += line
                continue
            key = _key(line)
            seen[key] += 1
            content = line.rstrip()
            items.append(
                GroupItem(
                    key=key if seen[key] == 1 else f"{key}\n{seen[key]}",
                    lead=margin,
                    body=Leaf(content, content.strip()),
                    trail=line[len(content) :],
                )
            )
            margin = ""
        return Group(kind="lines", items=(*items, GroupItem(key=_END, body=Leaf(margin, margin))))

    def is_valid(self, _text: str, _budget: Budget) -> bool:
        """Any text is a set of lines."""
        return True

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        return ContestedPlace(kind=PlaceKind.KEY, at="".join(str(step) for step in path).strip())


def _key(line: str) -> str:
    requirement = _REQUIREMENT.match(line.strip())
    if requirement is None:
        return line.strip()
    name, marker = requirement.groups()
    return _SEPARATORS.sub("-", name).lower() + "".join((marker or "").split())


def _logical_lines(text: str, budget: Budget) -> list[str]:
    """Lines, with those a backslash continues."""
    found: list[str] = []
    continues = False
    for line in lines_of(text):
        budget.tick()
        if continues:
            found[-1] += line
        else:
            found.append(line)
        continues = line.endswith("\\\n") and not line.lstrip().startswith("#")
    return found
