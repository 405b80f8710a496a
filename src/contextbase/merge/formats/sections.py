"""Prose as a tree of sections: each heading with what stands below it, up to the next heading of its level."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final, NamedTuple, Self

from contextbase.merge.budget import Budget
from contextbase.merge.document import Folded, Group, Insertions, Item
from contextbase.merge.formats.blocks import blocks, definitions, is_blank

__all__ = ["Heading", "Outline", "SectionKey", "headings"]

_CONTENT: Final = ""  # the key of what stands below a heading before the first heading inside it
_DEFINITIONS: Final = " definitions"  # the key of the link definitions at the end of that
_RULE: Final = re.compile(r"[ \t]*(?:-[ \t]*){3,}\n|[ \t]*(?:\*[ \t]*){3,}\n|[ \t]*(?:_[ \t]*){3,}\n")
_CANDIDATE: Final = re.compile(  # starting with a newline, not `^`: the search for it is many times faster
    r"\n(?: {0,3}(`{3,}|~{3,})[^\n]*"  # a fence
    r"| {0,3}(\#{1,6})(?:[ \t]([^\n]*))?"  # `# title`
    r"|([=\-~^\"*+\#`'])\4{2,}[ \t]*)(?=\n)"  # an underline
)
_MAX_DEPTH: Final = 40


class Heading(NamedTuple):
    line: int
    lines: int  # 1, or 2 with an underline, or a rule directly above
    level: int
    title: str


class SectionKey(str):
    """A section's identity; `shown` is what people call it."""

    __slots__ = ("shown",)
    shown: str

    def __new__(cls, key: str, shown: str) -> Self:
        made = super().__new__(cls, key)
        made.shown = shown
        return made


def headings(text: str, budget: Budget, *, underlined: str = "=-") -> list[Heading]:
    """The headings of a text; fenced code has none. `underlined`: the characters that may underline one."""
    found: list[Heading] = []
    fence = ""
    levels: list[str] = []
    number = at = 0
    for match in _CANDIDATE.finditer("\n" + text):
        budget.tick()
        start = match.start()
        number += text.count("\n", at, start)
        at = start
        opening, hashes, title, underline = match.groups()
        if fence:
            if opening and opening.startswith(fence) and not match.group().strip().strip(fence[0]):
                fence = ""
        elif opening:
            fence = opening
        elif hashes:
            above = "" if text.endswith("\n\n", 0, start) else _line_above(text, start)
            ruled = _RULE.fullmatch(above) is not None and not _line_above(text, start - len(above)).strip()
            ruled = ruled and start > len(above)
            found.append(Heading(number - ruled, 1 + ruled, len(hashes), _title(title or "")))
        elif underline in underlined:
            above = _line_above(text, start)
            if not above.strip() or above[0] in " \t|-*>#<=" or _line_above(text, start - len(above)).strip():
                continue
            if underline not in levels:
                levels.append(underline)
            level = "=-".index(underline) if underlined == "=-" else levels.index(underline)
            found.append(Heading(number - 1, 2, level + 1, above.strip()))
    return found


def _title(text: str) -> str:
    """Without the hashes that may close it."""
    title = text.strip()
    unclosed = title.rstrip("#")
    return unclosed.rstrip() if unclosed != title and unclosed[-1:] in ("", " ", "\t") else title


def _line_above(text: str, start: int) -> str:
    return text[text.rfind("\n", 0, max(start - 1, 0)) + 1 : start]


class Outline(NamedTuple):
    """A text with its headings, and how its sections are read."""

    lines: list[str]
    headings: list[Heading]
    name: Callable[[str], SectionKey]
    keeps_both: bool  # whether paragraphs both sides inserted at one spot are both kept; list entries always are
    may_join: Callable[[Insertions], bool]  # whether sections both sides inserted at one spot are both kept
    budget: Budget

    def document(self) -> Group:
        return self._section(0, len(self.lines), self.headings, 0)

    def _section(self, start: int, end: int, below: list[Heading], depth: int) -> Group:
        """The lines from start to end, `below` being the headings among them, as content and sub-sections."""
        pieces: list[tuple[str, Item]] = []
        first = below[0].line if below else end
        pieces += self._content(start, self._last(start, first))
        seen: Counter[str] = Counter()
        at = 0
        while at < len(below):
            heading = below[at]
            after = at + 1
            while after < len(below) and (below[after].level > heading.level or depth >= _MAX_DEPTH):
                after += 1
            above = "".join(self.lines[self._last(start, heading.line) : heading.line])
            body_start = heading.line + heading.lines
            last = self._last(body_start, below[after].line if after < len(below) else end)
            while body_start < last and is_blank(self.lines[body_start]):
                body_start += 1
            inner = below[at + 1 : after] if depth < _MAX_DEPTH else []
            text = "".join(self.lines[body_start:last])
            unfold = partial(self._section, body_start, last, inner, depth + 1)
            key = self.name(heading.title)
            seen[key] += 1
            if seen[key] > 1:
                key = SectionKey(f"{key}\n{seen[key]}", key.shown)
            # The title is the item's lead, not its head: two different new titles are contested.
            title = "".join(self.lines[heading.line : body_start])
            pieces.append((above, Item(key=key, lead=title, body=Folded(text, text, unfold))))
            at = after
        end_of_text = "".join(self.lines[self._last(start, end) : end])
        return _spaced(pieces)._replace(close=end_of_text, may_join=self.may_join)

    def _content(self, start: int, end: int) -> Iterator[tuple[str, Item]]:
        """What stands above the first heading; link definitions at its end are kept apart."""
        cut = end
        while cut > start and not is_blank(self.lines[cut - 1]):
            cut -= 1
        links = definitions(self.lines[cut:end])
        last = self._last(start, cut) if links is not None else end
        text = "".join(self.lines[start:last])
        if text:
            body = Folded(
                text, text, lambda: blocks(self.lines[start:last], keeps_both=self.keeps_both, budget=self.budget)
            )
            yield "", Item(key=SectionKey(_CONTENT, ""), body=body)
        if links is not None:
            yield "".join(self.lines[last:cut]), Item(key=SectionKey(_DEFINITIONS, ""), body=links)

    def _last(self, start: int, end: int) -> int:
        """The end without the blank lines before it."""
        lines = self.lines
        while end > start and lines[end - 1].isspace():
            end -= 1
        return end


def _spaced(pieces: list[tuple[str, Item]]) -> Group:
    """Sections, each with the blank lines above it.

    Where a blank line stands above every one but the first, that line is the separator: whatever comes or goes, one
    blank line stands between two sections. Other blank lines go with the section above them.
    """
    above = [blanks for blanks, _ in pieces[1:]]
    separator = "\n" if all(above) else ""
    items = [
        item._replace(gap=blanks.removesuffix(separator))
        for (_, item), blanks in zip(pieces, [*above, separator], strict=False)
    ]
    if pieces and pieces[0][0]:
        items[0] = items[0]._replace(lead=pieces[0][0] + items[0].lead)
    return Group(kind="section", items=tuple(items), separator=separator)
