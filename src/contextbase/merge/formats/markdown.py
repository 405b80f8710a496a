"""Markdown: front matter by key, sections by heading, lists by item, tables by row, link definitions by label."""

import re
from functools import partial
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, Insertions, Item, Leaf
from contextbase.merge.formats.scalars import resolve_prose
from contextbase.merge.formats.sections import Outline, SectionKey, headings
from contextbase.merge.formats.textlines import lines_of
from contextbase.merge.formats.yaml import parse_yaml_block
from contextbase.merge.formats.yaml_check import is_valid_yaml
from contextbase.merge.model import Place, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured

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
            matter = "".join(lines[1:end])
            body: Body = Folded(matter, matter, partial(_front_matter, matter, budget))
            items.append(Item(key=_FRONT_MATTER, head=lines[0], body=body, trail=lines[end]))
            lines = lines[end + 1 :]
        found = headings("".join(lines), budget)
        body = Outline(lines, found, _key, keeps_both=False, may_join=_is_newest_first, budget=budget).document()
        return Group(kind="markdown", items=(*items, Item(key="text", body=body)))

    def is_valid(self, text: str, budget: Budget) -> bool:
        """Any text is Markdown, but its front matter must be YAML."""
        if not text.startswith("---"):
            return True
        lines = lines_of(text)
        return is_valid_yaml("".join(lines[1 : _front_matter_end(lines)]), budget)

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_prose(base, ours, theirs)

    def place(self, path: Path) -> Place:
        return heading_place(path)


def heading_place(path: Path) -> Place:
    titles = [step.shown for step in path if isinstance(step, SectionKey) and step.shown]
    return Place(kind=PlaceKind.HEADING, at=" > ".join(titles))


def _front_matter(text: str, budget: Budget) -> Group:
    try:
        return parse_yaml_block(text, budget)
    except Unstructured:
        return Group(kind="text", items=(Item(key="", body=Leaf(text, text)),))


def _is_newest_first(insertions: Insertions) -> bool:
    """Sections right below a title with others after them are news, and both stay; elsewhere their order is anyone's
    guess."""
    return insertions.above in (None, "") and not insertions.at_end


def _key(title: str) -> SectionKey:
    return SectionKey(_SPACE.sub(" ", title).casefold(), title)


def _front_matter_end(lines: list[str]) -> int:
    if not lines or lines[0].rstrip() != "---":
        return 0
    return next((number for number, line in enumerate(lines[1:], 1) if line.rstrip() in ("---", "...")), 0)
