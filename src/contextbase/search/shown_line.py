"""A line of a text as a search shows it: short, and with the places that match. Pure."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import chain
from typing import Final

__all__ = ["LONGEST_SHOWN", "FoundLine", "context_line", "matching_line"]

LONGEST_SHOWN: Final = 300  # characters
_SHOWN_BEFORE: Final = 80  # of these, before the first match of a long line
_MOST_RANGES: Final = 64
_BYTES_PER_CHARACTER: Final = 4
_CONTINUES: Final = range(0x80, 0xC0)  # the bytes of a character after its first


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundLine:
    number: int  # from 1
    text: str  # without its end
    ranges: tuple[tuple[int, int], ...] | None  # where in `text` it matches, in characters; None: it is only context
    is_cut: bool = False  # the line is longer than that


def context_line(text: bytes, number: int, start: int, end: int) -> FoundLine:
    """The line from `start` to `end`, from its beginning."""
    shown, is_cut = _decoded(text, start, end)
    return FoundLine(number=number, text=shown, ranges=None, is_cut=is_cut)


def matching_line(text: bytes, number: int, start: int, end: int, matches: Iterable[tuple[int, int]]) -> FoundLine:
    """Likewise; a long line from a little before its first match. `matches` are places in the text, in order."""
    places = iter(matches)
    first = next(places)
    begin = start
    if end - start > LONGEST_SHOWN:
        begin = max(start, first[0] - _SHOWN_BEFORE)
        while begin > start and text[begin] in _CONTINUES:
            begin -= 1
    shown, is_cut = _decoded(text, begin, end)
    furthest = begin + LONGEST_SHOWN * _BYTES_PER_CHARACTER
    ranges: list[tuple[int, int]] = []
    for match in chain((first,), places):
        from_, to = (len(text[begin : min(place, furthest)].decode(errors="replace")) for place in match)
        if from_ > len(shown) or len(ranges) == _MOST_RANGES:
            break
        ranges.append((from_, min(to, len(shown))))
    return FoundLine(number=number, text=shown, ranges=tuple(ranges), is_cut=is_cut or begin > start)


def _decoded(text: bytes, start: int, end: int) -> tuple[str, bool]:
    """The first characters, and whether there are more. A line's carriage return belongs to its end."""
    if end > start and text[end - 1 : end] == b"\r":
        end -= 1
    most = start + LONGEST_SHOWN * _BYTES_PER_CHARACTER
    characters = text[start : min(end, most)].decode(errors="replace")
    return characters[:LONGEST_SHOWN], end > most or len(characters) > LONGEST_SHOWN
