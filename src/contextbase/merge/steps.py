"""How many steps a comparison by line takes at most, told before it is made: libgit2 cannot be stopped half-way.

libgit2 looks at up to 256 diagonals (or the square root of the lines, if that is more) for each line that was changed
and stands in the other text as well. So the number of these lines is what counts. It is first taken to be all lines
between the first and the last difference, which are quickly counted. If these are too many, it looks closer.
"""

from math import isqrt
from typing import Final

from contextbase.merge.matches import alike, same_bytes

__all__ = ["line_steps", "steps_for"]

_LEAST_DIAGONALS: Final = 256
_SMALL: Final = 256 << 10  # bytes of both texts: to count their lines is quicker than to look for what is alike
_MOST_LINES: Final = 250_000  # of both texts between the first and the last difference: only to read them takes time
# How far behind a difference the texts may be alike again, and how much of the other text is searched for that.
_AHEAD: Final = (
    *((256, 8 << 10), (512, 8 << 10), (1 << 10, 8 << 10), (2 << 10, 64 << 10)),
    *((16 << 10, 512 << 10), (128 << 10, 4 << 20), (1 << 20, 64 << 20)),
)
_NEEDLE: Final = 128
_MOST_SEARCHED: Final = 32 << 20  # bytes


def steps_for(changed: int, lines: int) -> int:
    """For texts with that many lines together, of which that many were removed or added. A step takes about 15 ns."""
    return lines + changed * max(_LEAST_DIAGONALS, isqrt(lines))


def line_steps(old: bytes, new: bytes, *, enough: int) -> int:
    """At least the steps that a comparison of the texts takes; does not look closer if they are not over `enough`."""
    if len(old) + len(new) <= _SMALL:
        lines = old.count(b"\n") + new.count(b"\n") + 2
        if (steps := steps_for(lines, lines)) <= enough:
            return steps
    head, tail = alike(old, new)
    between, new_between = old[head : len(old) - tail], new[head : len(new) - tail]
    lines = between.count(b"\n") + new_between.count(b"\n") + 2
    steps = steps_for(lines, lines)
    if lines <= _MOST_LINES and (not between or not new_between):
        return lines
    return steps if steps <= enough or lines > _MOST_LINES else _closer(between, new_between, lines, enough)


def _closer(old: bytes, new: bytes, lines: int, enough: int) -> int:
    removed, added = _changed(old, new)
    steps = steps_for(sum(part.count(b"\n") + 1 for part in (*removed, *added)), lines)
    return steps if steps <= enough else steps_for(_how_many_in(removed, new) + _how_many_in(added, old), lines)


def _changed(old: bytes, new: bytes) -> tuple[list[bytes], list[bytes]]:
    """Parts of both texts without which they are the same: not the least possible, but found quickly."""
    removed, added = [], []
    at = new_at = 0
    room = _MOST_SEARCHED
    while at < len(old) and new_at < len(new) and room > 0:
        after, new_after, searched = _alike_again(old, new, at, new_at)
        room -= searched
        if after < 0:
            break
        # The texts were alike again before the place where that was seen.
        _, before = alike(old[at:after], new[new_at:new_after])
        removed.append(old[at : after - before])
        added.append(new[new_at : new_after - before])
        same = same_bytes(old, after, new, new_after, min(len(old) - after, len(new) - new_after))
        at, new_at = old.rfind(b"\n", 0, after + same) + 1, new.rfind(b"\n", 0, new_after + same) + 1
    return [*removed, old[at:]], [*added, new[new_at:]]


def _how_many_in(parts: list[bytes], other: bytes) -> int:
    """How many lines of these parts of one text the other has as well."""
    known = {*other.split(b"\n")}
    return sum(line in known for part in parts for line in part.split(b"\n"))


def _alike_again(old: bytes, new: bytes, at: int, new_at: int) -> tuple[int, int, int]:
    """Where a line begins from which on the texts are alike, -1 if that was not found; and how much was searched."""
    searched = 0
    for ahead, window in _AHEAD:
        start = old.find(b"\n", at + ahead)
        if start < 0 or start + _NEEDLE > len(old):
            break
        found = new.find(old[start : start + _NEEDLE], new_at, new_at + window)
        searched += min(window, len(new) - new_at) if found < 0 else found - new_at
        if found >= 0:
            return start + 1, found + 1, searched
    return -1, -1, searched
