"""JSON lines: a list of values, one a line; records by identity where they have one."""

from contextbase.merge.budget import Budget
from contextbase.merge.document import Group, GroupItem, Leaf
from contextbase.merge.formats.json import JsonFormat, body_at, identities_of
from contextbase.merge.model import ContestedPlace
from contextbase.merge.ports import Path, Resolution, Unstructured, is_readable
from contextbase.merge.shared import Shared

__all__ = ["JsonLinesFormat"]


class JsonLinesFormat:
    def __init__(self) -> None:
        self._values = JsonFormat(with_comments=False)

    @property
    def name(self) -> str:
        return "jsonl"

    def parse(self, text: str, budget: Budget, _shared: Shared | None = None) -> Group:
        items: list[GroupItem] = []
        at = lead_start = 0
        while at < len(text):
            budget.tick(8)
            line_end = text.index("\n", at) + 1
            line = text[at:line_end]
            if line.isspace():
                at = line_end
                continue
            start = at + len(line) - len(line.lstrip())
            body, value, end = body_at(text, start, budget)
            if text[end:line_end].strip():
                raise Unstructured("a line holds more, or less, than one JSON value")
            lead, trail = text[lead_start:start], text[end:line_end]
            items.append(GroupItem(None, body, lead=lead, trail=trail, identities=identities_of(value)))
            at = lead_start = line_end
        return Group("records", tuple(items), close=text[lead_start:], keyed=False)

    def is_valid(self, text: str, budget: Budget) -> bool:
        return is_readable(self, text, budget)

    def resolve(self, path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return self._values.resolve(path, base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        return self._values.place(("", *path))
