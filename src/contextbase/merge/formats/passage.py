"""Where prose differs: most often in a single passage below one heading, and then nothing else of it is read."""

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from contextbase.merge.formats.blocks import definitions_at_end
from contextbase.merge.formats.headings import MAY_BE_HEADING, Heading
from contextbase.merge.shared import Shared

__all__ = ["Passage", "find_passage"]

_BLANK_LINES: Final = re.compile(r"(?:[^\S\n]*\n)*")


class Passage(NamedTuple):
    """What stands below one heading and above the next, without the blank lines around it."""

    start: int
    after: int  # how many characters follow it
    titles: tuple[str, ...]  # of the headings it stands below, from the outside in
    titles_above: tuple[str, ...]  # of the other headings that come before it
    has_links: bool  # whether it ends with link definitions on any side


def find_passage(shared: Shared, headings: Callable[[str], Iterator[Heading]]) -> Passage | None:
    """The passage that holds all that the sides differ in, if there is one and no side is without it."""
    texts = shared.texts
    if not texts or not all(texts):
        return None
    text = texts[0]
    start = text.rfind("\n", 0, shared.head) + 1
    after = len(text) - _line_end(text, len(text) - shared.tail)
    if not start or any(_may_have_heading(side, start, len(side) - after) for side in texts):
        return None
    above: list[Heading] = []
    others: list[str] = []
    below = len(text)
    for heading in headings(text):
        if heading.start >= start:
            below = heading.start
            break
        while above and above[-1].level >= heading.level:
            others.append(above.pop().title)
        above.append(heading)
    if not above or above[-1].end > start:
        return None
    return _between(texts, above, others, len(text) - below)


def _may_have_heading(text: str, start: int, end: int) -> bool:
    """Whether one may stand in these lines, or be one or none because of them: a line may underline the last of them,
    or the line below if the last is blank."""
    below = _line_end(text, _line_end(text, end))
    matches = MAY_BE_HEADING.finditer(text, start - 1, below)
    return any(match.start() < end - 1 or match.group(4) for match in matches)


def _line_end(text: str, start: int) -> int:
    return text.find("\n", start) + 1 or len(text)


def _between(texts: tuple[str, ...], above: list[Heading], others: list[str], below: int) -> Passage | None:
    """What stands between the headings, if blank lines around it are the same on all sides."""
    bounds = set()
    has_links = False
    for text in texts:
        start = _after_blank_lines(text, above[-1].end)
        passage = text[start : len(text) - below].rstrip()
        if not passage:
            return None
        end = text.index("\n", start + len(passage)) + 1
        bounds.add((text[above[-1].end : start], text[end : len(text) - below], start, len(text) - end))
        has_links = has_links or definitions_at_end(text[start:end])[0] is not None
    if len(bounds) > 1:
        return None
    ((_, _, start, after),) = bounds
    return Passage(start, after, tuple(heading.title for heading in above), tuple(others), has_links)


def _after_blank_lines(text: str, start: int) -> int:
    blanks = _BLANK_LINES.match(text, start)
    return start if blanks is None else blanks.end()
