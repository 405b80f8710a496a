"""Markdown: front matter by key, sections by heading, lists by item, tables by row, link definitions by label."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Final

from contextbase.merge.budget import Budget
from contextbase.merge.document import Body, Folded, Group, GroupItem, Insertions, Leaf
from contextbase.merge.formats.headings import Heading, find_headings
from contextbase.merge.formats.passage import find_passage
from contextbase.merge.formats.scalars import resolve_prose
from contextbase.merge.formats.sections import Outline, SectionKey, headings_around
from contextbase.merge.formats.yaml import parse_yaml_block
from contextbase.merge.formats.yaml_check import is_valid_yaml
from contextbase.merge.model import ContestedPlace, PlaceKind
from contextbase.merge.ports import Path, Resolution, Unstructured
from contextbase.merge.shared import Shared

__all__ = ["MarkdownFormat", "heading_place"]

_FRONT_MATTER: Final = "front matter"
_OPENING: Final = re.compile(r"---[^\S\n]*\n")
_CLOSING: Final = re.compile(r"\n(?:---|\.\.\.)[^\S\n]*\n")


class MarkdownFormat:
    name = "markdown"

    def parse(self, text: str, budget: Budget, shared: Shared | None = None) -> Group:
        shared = shared or Shared()
        items: list[GroupItem] = []
        start, end, after = _front_matter_bounds(text)
        outline = Outline(text, name=_key, keeps_both=False, may_join=_never, budget=budget, shared=shared)
        find = partial(_headings_below, after, budget)
        passage = shared.once("passage", lambda: find_passage(shared, find) if shared.head > after else None)
        if passage is not None:
            return outline.passage(passage)
        if after:
            matter = text[start:end]
            body: Body = Folded(matter, matter, partial(_front_matter, matter, budget, shared))
            items.append(GroupItem(key=_FRONT_MATTER, head=text[:start], body=body, trail=text[end:after]))
            text = text[after:]
        head = shared.head - after
        known = [heading for heading in shared.found_in_head if heading.end < head]
        found = find_headings(text, budget, known=known)
        around, end = headings_around(found, len(text), known=known, tail=shared.tail)
        shared.found_in_head = around
        outline = outline._replace(text=text, headings=around, head=head, end=end)
        return Group(kind="markdown", items=(*items, *outline.items()))

    def is_valid(self, text: str, budget: Budget) -> bool:
        """Any text is Markdown, but its front matter must be YAML."""
        if not text.startswith("---"):
            return True
        start, end, _ = _front_matter_bounds(text)
        return is_valid_yaml(text[start:end], budget)

    def resolve(self, _path: Path, base: Leaf | None, ours: Leaf, theirs: Leaf) -> Resolution | None:
        return resolve_prose(base, ours, theirs)

    def place(self, path: Path) -> ContestedPlace:
        return heading_place(path)


def _headings_below(start: int, budget: Budget, text: str) -> Iterator[Heading]:
    """The headings of a text whose front matter ends at `start`."""
    if not start:
        yield from find_headings(text, budget)
        return
    for heading in find_headings(text[start:], budget):
        yield heading._replace(start=heading.start + start, end=heading.end + start)


def heading_place(path: Path) -> ContestedPlace:
    titles = [step.shown for step in path if isinstance(step, SectionKey) and step.shown]
    return ContestedPlace(kind=PlaceKind.HEADING, at=" > ".join(titles))


def _front_matter(text: str, budget: Budget, shared: Shared) -> Group:
    try:
        return parse_yaml_block(text, budget, shared)
    except Unstructured:
        return Group(kind="text", items=(GroupItem(key="", body=Leaf(text, text)),))


def _never(_insertions: Insertions) -> bool:
    """Sections both sides inserted at one spot: their order is anyone's guess, and most often they are one section, or
    one is a part of the other."""
    return False


def _key(title: str) -> SectionKey:
    return SectionKey(" ".join(title.split()).casefold(), title)


def _front_matter_bounds(text: str) -> tuple[int, int, int]:
    """Where the front matter starts and ends, and where its closing line does; all 0 if there is none."""
    opening = _OPENING.match(text)
    closing = opening and _CLOSING.search(text, opening.end() - 1)
    return (opening.end(), closing.start() + 1, closing.end()) if opening and closing else (0, 0, 0)
