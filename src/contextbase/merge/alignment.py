"""Which elements of two sequences are the same: a longest common subsequence, bounded."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from contextbase.merge.budget import Budget

__all__ = ["Hunk", "align", "hunks"]

_MAX_EDITS: Final = 1500  # beyond this the middle counts as replaced; memory grows with its square


class Hunk(NamedTuple):
    """`base[start:end]` became `side[side_start:side_end]`."""

    start: int
    end: int
    side_start: int
    side_end: int


def hunks(base: Sequence[Hashable], side: Sequence[Hashable], budget: Budget) -> list[Hunk]:
    """What changed from base to side, in order, with at least one equal element between two hunks."""
    found: list[Hunk] = []
    base_at = side_at = 0
    for base_match, side_match in [*align(base, side, budget), (len(base), len(side))]:
        if base_match > base_at or side_match > side_at:
            found.append(Hunk(base_at, base_match, side_at, side_match))
        base_at, side_at = base_match + 1, side_match + 1
    return found


def align(base: Sequence[Hashable], side: Sequence[Hashable], budget: Budget) -> list[tuple[int, int]]:
    """The pairs of positions that are kept, a longest common subsequence unless the edit limit is reached."""
    shorter = min(len(base), len(side))
    head = 0
    while head < shorter and base[head] == side[head]:
        head += 1
    tail = 0
    while tail < shorter - head and base[-1 - tail] == side[-1 - tail]:
        tail += 1
    budget.tick(head + tail)
    pairs = [(position, position) for position in range(head)]
    middle = _matches(base[head : len(base) - tail], side[head : len(side) - tail], budget)
    pairs += [(left + head, right + head) for left, right in middle]
    pairs += [(len(base) - back, len(side) - back) for back in range(tail, 0, -1)]
    return pairs


def _matches(a: Sequence[Hashable], b: Sequence[Hashable], budget: Budget) -> list[tuple[int, int]]:
    if not a or not b:
        return []
    budget.tick(len(a) + len(b))
    places = {element: position for position, element in enumerate(b)}
    if len(places) == len(b) and len(set(a)) == len(a):
        return _longest_increasing([(x, places[element]) for x, element in enumerate(a) if element in places])
    return _myers(a, b, budget)


def _longest_increasing(pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Where no element stands twice, the longest common subsequence is a longest run that rises on both sides."""
    tails: list[int] = []  # the lowest end of a rising run of each length
    ends: list[int] = []  # which pair that is
    previous: list[int] = []
    for index, (_, y) in enumerate(pairs):
        length = bisect_left(tails, y)
        previous.append(ends[length - 1] if length else -1)
        tails[length : length + 1] = [y]
        ends[length : length + 1] = [index]
    run: list[tuple[int, int]] = []
    index = ends[-1] if ends else -1
    while index >= 0:
        run.append(pairs[index])
        index = previous[index]
    run.reverse()
    return run


def _myers(a: Sequence[Hashable], b: Sequence[Hashable], budget: Budget) -> list[tuple[int, int]]:
    trace: list[dict[int, int]] = []
    frontier = {1: 0}
    for edits in range(min(len(a) + len(b), _MAX_EDITS) + 1):
        trace.append(frontier)
        frontier = dict(frontier)
        budget.tick(2 * edits + 1)
        for diagonal in range(-edits, edits + 1, 2):
            if diagonal == -edits or (diagonal != edits and frontier[diagonal - 1] < frontier[diagonal + 1]):
                x = frontier[diagonal + 1]
            else:
                x = frontier[diagonal - 1] + 1
            y = x - diagonal
            while x < len(a) and y < len(b) and a[x] == b[y]:
                x, y = x + 1, y + 1
            frontier[diagonal] = x
            if x >= len(a) and y >= len(b):
                return _backtrack(trace, len(a), len(b))
    return []


def _backtrack(trace: list[dict[int, int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        frontier = trace[edits]
        diagonal = x - y
        if diagonal == -edits or (diagonal != edits and frontier[diagonal - 1] < frontier[diagonal + 1]):
            previous = diagonal + 1
        else:
            previous = diagonal - 1
        previous_x = frontier[previous]
        previous_y = previous_x - previous
        while x > max(previous_x, 0) and y > max(previous_y, 0):
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = previous_x, previous_y
    pairs.reverse()
    return pairs
