"""Markdown: front matter by key, sections by heading, lists by item, tables by row, link definitions by label."""

import re
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Group, Item, Leaf
from contextbase.merge.formats.scalars import resolve_prose
from contextbase.merge.formats.sections import Outline, SectionKey, headings
from contextbase.merge.formats.textlines import lines_of
from contextbase.merge.formats.yaml import parse_yaml_block
from contextbase.merge.model import Place, PlaceKind
from contextbase.merge.ports import Path, Resolution

__all__ = ["MarkdownFormat", "heading_place"]

_SPACE: Final = re.compile(r"\s+")
_FRONT_MATTER: Final = "front matter"


class MarkdownFormat:
    name = "markdown"

    def parse(self, text: str, budget: Budget) -> Group:
        lines = lines_of(text)
        items: list[Item] = []
        end = _front_matter_end(lines)
        if end:
            matter = parse_yaml_block("".join(lines[1:end]), budget)
            items.append(Item(key=_FRONT_MATTER, head=lines[0], body=matter, trail=lines[end]))
            lines = lines[end + 1 :]
        body = Outline(lines, headings("".join(lines), budget), _key, keeps_both=False, budget=budget).document()
        return Group(kind="markdown", items=(*items, Item(key="text", body=body)))

    def is_valid(self, _text: str, _budget: Budget) -> bool:
        """Any text is Markdown."""
        return True

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_prose(base, ours, theirs)

    def place(self, path: Path) -> Place:
        return heading_place(path)


def heading_place(path: Path) -> Place:
    titles = [step.shown for step in path if isinstance(step, SectionKey) and step.shown]
    return Place(kind=PlaceKind.HEADING, at=" > ".join(titles))


def _key(title: str) -> SectionKey:
    return SectionKey(_SPACE.sub(" ", title).casefold(), title)


def _front_matter_end(lines: list[str]) -> int:
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
