"""INI and its kin (.cfg, .properties, .env): sections and keys; a value of several lines is a list of lines."""

import re
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Group, GroupItem, Leaf
from contextbase.merge.formats.scalars import resolve_scalar
from contextbase.merge.formats.textlines import lines_of
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured, is_readable
from contextbase.merge.shared import Shared

__all__ = ["IniFormat"]

_HEADER: Final = re.compile(r"[ \t]*\[([^\n]*)\][ \t]*(?:[#;][^\n]*)?\n")
_ENTRY: Final = re.compile(r"[ \t]*((?:export[ \t]+)?[^\s=:#;\[!](?:[^\n=:]*[^\s=:])?)[ \t]*(?:[=:][ \t]*)?")
_END: Final = "end of file"


class IniFormat:
    name = "ini"

    def parse(self, text: str, budget: Budget, _shared: Shared | None = None) -> Group:
        sections: list[GroupItem] = []
        head, lead, title = "", "", ""
        entries: list[GroupItem] = []
        margin = ""
        for line in _logical_lines(text, budget):
            header = _HEADER.fullmatch(line)
            if header is not None:
                sections.append(GroupItem(key=title, lead=lead, head=head, body=_keyed("section", entries)))
                title, head, lead = f"[{header.group(1).strip()}]", line, margin
                entries, margin = [], ""
            elif not line.strip() or line.lstrip()[0] in "#;!":
                margin += line
            else:
                entries.append(_entry(line, margin))
                margin = ""
        sections.append(GroupItem(key=title, lead=lead, head=head, body=_keyed("section", entries)))
        sections.append(GroupItem(key=_END, body=Leaf(margin, margin)))
        return _keyed("document", sections)

    def is_valid(self, text: str, budget: Budget) -> bool:
        return is_readable(self, text, budget)

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_scalar(base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        return ContestedPlace(kind=PlaceKind.KEY, at=".".join(str(step).strip("[]") for step in path if step != ""))


def _logical_lines(text: str, budget: Budget) -> list[str]:
    """Lines with what continues them: indented ones below a key, and those after a backslash."""
    found: list[str] = []
    continues = False
    for line in lines_of(text):
        budget.tick()
        indented = line[0] in " \t" and line.strip() != "" and line.lstrip()[0] not in "#;["
        if continues or (indented and found and _continues_a_value(found[-1])):
            found[-1] += line
        else:
            found.append(line)
        continues = line.rstrip("\n").endswith("\\") and not line.lstrip().startswith(("#", ";", "!"))
    return found


def _continues_a_value(line: str) -> bool:
    """Whether an indented line can go on with this one. In a file that indents its keys (.gitconfig) it cannot."""
    return line[0] not in " \t#;[!\n" and re.match(r"[^\n]*[=:]", line) is not None


def _entry(line: str, lead: str) -> GroupItem:
    match = _ENTRY.match(line)
    if match is None:
        raise Unstructured(f"{line.strip()[:40]!r} is neither a section nor a key")
    value = line[match.end() :].rstrip()
    head, trail = line[: match.end()], line[match.end() + len(value) :]
    return GroupItem(key=match.group(1).strip(), lead=lead, head=head, body=_value(value), trail=trail)


def _value(text: str) -> Body:
    first, newline, rest = text.partition("\n")
    if not newline or first.strip() or "\\\n" in text:
        return Leaf(text, text.strip())
    lines = [*rest.split("\n")]
    items = tuple(GroupItem(key=None, body=Leaf(line, line.strip())) for line in lines)
    return Group(kind="lines", items=items, open=first + newline, keyed=False, separator="\n")


def _keyed(kind: str, items: list[GroupItem]) -> Group:
    if len({item.key for item in items}) < len(items):
        raise Unstructured("a key or section stands twice")
    return Group(kind=kind, items=tuple(items))
