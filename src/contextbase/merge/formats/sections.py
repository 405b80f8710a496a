"""Prose as a tree of sections: each heading with what stands below it, up to the next heading of its level."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from typing import Final, NamedTuple, Self

from contextbase.merge.budget import Budget
from contextbase.merge.document import Folded, Group, GroupItem, Insertions, Leaf
from contextbase.merge.formats.blocks import blocks, definitions_at_end
from contextbase.merge.formats.headings import Heading
from contextbase.merge.formats.passage import Passage
from contextbase.merge.shared import Shared

__all__ = ["Outline", "SectionKey", "headings_around"]

_CONTENT: Final = ""  # the key of what stands below a heading before the first heading inside it
_AS_CONTENT: Final = "content"
_AS_OLD_CONTENT: Final = "old content"
_UNREAD: Final = "\0"  # the key of what all sides begin with, in order before any other
_DEFINITIONS: Final = " definitions"  # the key of the link definitions at the end of that
_MAX_DEPTH: Final = 40
# How many of the headings that all sides have above and below what they differ in are read all the same: they show how
# sections are ordered and spaced.
_NEIGHBOURS_ABOVE: Final = 1
_NEIGHBOURS_BELOW: Final = 2


class SectionKey(str):
    """A section's identity; `shown` is what people call it."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, key: str, shown: str) -> Self:
        made = super().__new__(cls, key)
        made.shown = shown
        return made


def headings_around(
    found: Iterable[Heading], length: int, *, known: Sequence[Heading] = (), tail: int = 0
) -> tuple[list[Heading], int]:
    """The headings of a text, and where those end that are worth reading: a few below the start of the tail that all
    sides share. `known`: the first headings, if they were found on another side already."""
    headings = list(known)
    for heading in found:
        headings.append(heading)
        if len(headings) > _NEIGHBOURS_BELOW and length - headings[-1 - _NEIGHBOURS_BELOW].start < tail:
            return headings, headings.pop().start
    return headings, length


class Outline(NamedTuple):
    """A text with its headings, and how its sections are read."""

    text: str
    name: Callable[[str], SectionKey]
    keeps_both: bool  # whether paragraphs both sides inserted at one spot are both kept
    may_join: Callable[[Insertions], bool]  # whether sections both sides inserted at one spot are both kept
    budget: Budget
    shared: Shared
    headings: Sequence[Heading] = ()
    head: int = 0  # how many characters all sides begin with alike
    end: int = 0  # of what is read
    lists_keep_both: bool = True  # whether list entries both sides inserted at one spot are both kept
    is_release: Callable[[SectionKey], bool] | None = None  # of releases only the first is still written to

    def passage(self, found: Passage) -> Group:
        """The one passage that is read, between what stands above and below it."""
        start, end = found.start, len(self.text) - found.after
        text = self.text[start:end]
        key = SectionKey("passage", " > ".join(found.titles))
        is_old = self._has_release(found.titles) and self._has_release(found.titles_above)
        outline = self._of_old_release() if is_old else self
        read = (
            Folded(text, text, partial(outline.section, start, end, (), 0)) if found.has_links else outline.prose(text)
        )
        return Group(kind="passage", items=(GroupItem(key, read),), open=self.text[:start], close=self.text[end:])

    def items(self) -> tuple[GroupItem, GroupItem]:
        """What is read, and the rest."""
        text, rest = self.text[: self.end], self.text[self.end :]
        read = Folded(text, text, partial(self.section, 0, self.end, self.headings, 0))
        return GroupItem(key="read", body=read), GroupItem(key="rest", body=Leaf(rest, rest))

    def section(self, start: int, end: int, below: Sequence[Heading], depth: int) -> Group:
        """The text from start to end, `below` being the headings in it, as content and sub-sections."""
        ranges = _siblings(below) if depth < _MAX_DEPTH else [(at, at + 1) for at in range(len(below))]
        agreed = sum(1 for _, after in ranges if after < len(below) and below[after].start < self.head)
        unread = max(0, agreed - _NEIGHBOURS_ABOVE)
        if unread:
            last = self._last(start, below[ranges[unread][0]].start)
            text = self.text[start:last]
            pieces = [("", GroupItem(key=SectionKey(_UNREAD, ""), body=Leaf(text, text)))]
        else:
            last = self._last(start, below[0].start if below else end)
            pieces = list(self._content(start, last))
        seen: dict[str, int] = {}
        of_old: Outline | None = None  # made once, for those sections that need it
        has_release = self._has_release(below[at].title for at, _ in ranges[:unread])
        for at, after in ranges[unread:]:
            heading = below[at]
            above = self.text[last : heading.start]
            last = self._last(heading.end, below[after].start if after < len(below) else end)
            key = self.name(heading.title)
            seen[key] = seen.get(key, 0) + 1
            if seen[key] > 1:
                key = SectionKey(f"{key}\n{seen[key]}", key.shown)
            is_release = self.is_release is not None and self.is_release(key)
            outline = self
            if is_release and has_release:
                outline = of_old = of_old or self._of_old_release()
            has_release = has_release or is_release
            pieces.append((above, outline.sub_section(key, heading, last, below[at + 1 : after], depth)))
        return _spaced(pieces, close=self.text[last:end], may_join=self.may_join)

    def _has_release(self, titles: Iterable[str]) -> bool:
        return self.is_release is not None and any(self.is_release(self.name(title)) for title in titles)

    def _of_old_release(self) -> "Outline":
        """How a release below another is read: an entry that both sides add there is most likely one that belongs into
        the newest, which one side did not know yet."""
        return self._replace(keeps_both=False, lists_keep_both=False)

    def sub_section(
        self, key: SectionKey, heading: Heading, end: int, inner: Sequence[Heading], depth: int
    ) -> GroupItem:
        start = heading.end
        while start < end and self.text[start : (line_end := self.text.index("\n", start) + 1)].isspace():
            start = line_end
        # The title is the item's lead, not its head: two different new titles are contested.
        title, text = self.text[heading.start : start], self.text[start:end]
        known_as = (self._reading, key, title, text)
        item = self.shared.items.get(known_as)
        if item is None:
            unfold = partial(self.section, start, end, inner, depth + 1)
            item = self.shared.items[known_as] = GroupItem(key=key, lead=title, body=Folded(text, text, unfold))
        return item

    @property
    def _reading(self) -> str:
        """What is shared by its text goes by this name too: the same may stand in an old release, or in a list."""
        return _AS_CONTENT if self.lists_keep_both else _AS_OLD_CONTENT

    def _content(self, start: int, end: int) -> Iterator[tuple[str, GroupItem]]:
        """What stands above the first heading; link definitions at its end are kept apart."""
        text = self.text[start:end]
        links, cut = definitions_at_end(text)
        last = end if links is None else self._last(start, start + cut)
        text = self.text[start:last]
        if text:
            item = self.shared.items.get((self._reading, text))
            if item is None:
                item = GroupItem(key=SectionKey(_CONTENT, ""), body=self.prose(text))
                self.shared.items[self._reading, text] = item
            yield "", item
        if links is not None:
            yield self.text[last : start + cut], GroupItem(key=SectionKey(_DEFINITIONS, ""), body=links)

    def prose(self, text: str) -> Folded:
        """Text without a heading or link definitions."""
        unfold = partial(
            blocks,
            text,
            keeps_both=self.keeps_both,
            lists_keep_both=self.lists_keep_both,
            budget=self.budget,
            shared=self.shared,
        )
        return Folded(text, text, unfold)

    def _last(self, start: int, end: int) -> int:
        """The end without the blank lines before it."""
        length = len(self.text[start:end].rstrip())
        return self.text.index("\n", start + length) + 1 if length else start


def _siblings(headings: Sequence[Heading]) -> list[tuple[int, int]]:
    """The headings that are in no other one's section: the position of each, and that of the next."""
    found: list[tuple[int, int]] = []
    at = 0
    while at < len(headings):
        level = headings[at].level
        after = at + 1
        while after < len(headings) and headings[after].level > level:
            after += 1
        found.append((at, after))
        at = after
    return found


def _spaced(pieces: list[tuple[str, GroupItem]], *, close: str, may_join: Callable[[Insertions], bool]) -> Group:
    """Sections, each with the blank lines above it.

    Where a blank line stands above every one but the first, that line is the separator: whatever comes or goes, one
    blank line stands between two sections. Other blank lines go with the section above them.
    """
    above = [blanks for blanks, _ in pieces[1:]]
    separator = "\n" if all(above) else ""
    items = [
        item._replace(gap=gap) if (gap := blanks.removesuffix(separator)) else item
        for (_, item), blanks in zip(pieces, [*above, separator], strict=False)
    ]
    if pieces and pieces[0][0]:
        items[0] = items[0]._replace(lead=pieces[0][0] + items[0].lead)
    return Group(kind="section", items=tuple(items), close=close, separator=separator, may_join=may_join)
