"""The rules that settle contested lines of any text: few, and right far more often than not."""

import re
from collections.abc import Sequence
from typing import Final

from contextbase.merge.alignment import LineHunk, hunks
from contextbase.merge.budget import Bound, BudgetSpent, Steps
from contextbase.merge.model import Sides
from contextbase.merge.versions import higher
from contextbase.merge.words import having_both

__all__ = ["settle_contained", "settle_lines", "settle_prose"]

_VERSION: Final = re.compile(rb"\d\.\d+\.\d")  # in a text that may be code, 3 and 0.5 are just numbers
_MAX_LINES: Final = 2_000
_STEPS: Final = 4_000_000


def settle_lines(sides: Sides) -> bytes | None:
    """One side's lines, where a rule says that they are meant: the higher of two raised versions, or the insertion
    that has the other side's in it. None where no rule applies."""
    base, ours, theirs = sides
    if not base:
        longer, shorter = (ours, theirs) if len(ours) >= len(theirs) else (theirs, ours)
        return longer if _has_lines(longer, shorter) else None
    if not all(map(_VERSION.search, sides)):
        return None
    try:
        chosen = higher(base.decode(), ours.decode(), theirs.decode())
    except UnicodeDecodeError:
        return None
    return None if chosen is None else chosen.encode()


def settle_prose(sides: Sides, *, bound: Bound | None = None) -> bytes | None:
    """The lines of prose that are meant: of each line the higher of two raised versions, or the side that has every
    change of the other, by line or by word. None where no rule applies."""
    settled = _settle_versions(sides) or settle_contained(sides, bound=bound)
    if settled is not None or not sides.base:
        return settled
    try:
        chosen = having_both(*(side.decode() for side in sides), bound=bound)
    except UnicodeDecodeError:
        return None
    return None if chosen is None else chosen.encode()


def _settle_versions(sides: Sides) -> bytes | None:
    """Lines of prose that differ in versions alone, which both sides raised: each with the higher one. None where
    anything else differs, and for headings and rows of tables, which go by their text."""
    lines = [side.splitlines(keepends=True) for side in sides]
    if not len(lines[0]) == len(lines[1]) == len(lines[2]):
        return None
    settled: list[bytes] = []
    for base, ours, theirs in zip(*lines, strict=True):
        if base == ours == theirs:
            settled.append(ours)
            continue
        if base in (ours, theirs) or b"|" in base or base.lstrip().startswith(b"#"):
            return None
        try:
            chosen = higher(base.decode(), ours.decode(), theirs.decode())
        except UnicodeDecodeError:
            return None
        if chosen is None:
            return None
        settled.append(chosen.encode())
    return b"".join(settled)


def settle_contained(sides: Sides, *, bound: Bound | None = None) -> bytes | None:
    """The side that has every change of the other in its own: at its place, with all the lines that it brought. None
    if there is none. Blank lines, and white space at the end of lines, do not count."""
    base, ours, theirs = ([line.rstrip() for line in side.split(b"\n") if line.strip()] for side in sides)
    if not ours or not theirs or max(len(base), len(ours), len(theirs)) > _MAX_LINES:
        return None
    if not ({*ours}.difference(base).issubset(theirs) or {*theirs}.difference(base).issubset(ours)):
        return None  # as most are: told without looking where the changes are
    budget = bound or Steps(_STEPS)
    try:
        ours_hunks, theirs_hunks = hunks(base, ours, budget), hunks(base, theirs, budget)
    except BudgetSpent:
        return None
    if all(any(_is_in(small, theirs, large, ours) for large in ours_hunks) for small in theirs_hunks):
        return sides.ours
    if all(any(_is_in(small, ours, large, theirs) for large in theirs_hunks) for small in ours_hunks):
        return sides.theirs
    return None


def _is_in(small: LineHunk, smaller: Sequence[bytes], large: LineHunk, larger: Sequence[bytes]) -> bool:
    """Whether one side's change is in one of the other's. What was taken away must not be something else there: if the
    change leaves fewer lines than there were, a line that only the other has may be one of those, changed."""
    if small.start < large.start or small.end > large.end:
        return False
    brought, has = smaller[small.side_start : small.side_end], larger[large.side_start : large.side_end]
    if len(brought) < small.end - small.start and len(brought) < len(has):
        return False
    found = iter(has)
    return all(line in found for line in brought)


def _has_lines(longer: bytes, shorter: bytes) -> bool:
    """Whether the lines of one stand in the other, side by side and in order; lines both begin or end with are agreed
    text already, so that nothing may be left of the shorter one."""
    return not shorter or (b"\n" + shorter.rstrip(b"\n") + b"\n") in (b"\n" + longer.rstrip(b"\n") + b"\n")
