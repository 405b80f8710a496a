"""Which elements of two sequences are the same: a longest common subsequence, bounded."""

from bisect import bisect_left
from collections.abc import Hashable, Sequence
from typing import Final, NamedTuple

from contextbase.merge.budget import Bound

__all__ = ["LineHunk", "align", "hunks"]

_MAX_EDITS: Final = 1500  # beyond this the middle counts as replaced; memory grows with its square


class LineHunk(NamedTuple):
    """`base[start:end]` became `side[side_start:side_end]`."""

    start: int
    end: int
    side_start: int
    side_end: int


def hunks(base: Sequence[Hashable], side: Sequence[Hashable], budget: Bound) -> list[LineHunk]:
    """What changed from base to side, in order, with at least one equal element between two hunks."""
    found: list[LineHunk] = []
    base_at = side_at = 0
    for base_match, side_match in [*align(base, side, budget), (len(base), len(side))]:
        if base_match > base_at or side_match > side_at:
            found.append(LineHunk(base_at, base_match, side_at, side_match))
        base_at, side_at = base_match + 1, side_match + 1
    return found


def align(base: Sequence[Hashable], side: Sequence[Hashable], budget: Bound) -> list[tuple[int, int]]:
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


def _matches(a: Sequence[Hashable], b: Sequence[Hashable], budget: Bound) -> list[tuple[int, int]]:
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


def _myers(a: Sequence[Hashable], b: Sequence[Hashable], budget: Bound) -> list[tuple[int, int]]:
    numbers: dict[Hashable, int] = {}  # which compare faster than what they stand for
    left = [numbers.setdefault(element, len(numbers)) for element in a]
    right = [numbers.setdefault(element, len(numbers)) for element in b]
    a_end, b_end = len(left), len(right)
    most = min(a_end + b_end, _MAX_EDITS)
    middle = most + 1  # where diagonal 0 stands
    frontier = [0] * (2 * middle + 1)
    trace: list[list[int]] = []  # the frontier before each edit, from diagonal -edits - 1 to edits + 1
    for edits in range(most + 1):
        trace.append(frontier[middle - edits - 1 : middle + edits + 2])
        budget.tick(2 * edits + 1)
        first, last = middle - edits, middle + edits
        for at in range(first, last + 1, 2):
            x = frontier[at + 1]
            if at != first and (at == last or frontier[at - 1] >= x):
                x = frontier[at - 1] + 1
            y = x - at + middle
            while x < a_end and y < b_end and left[x] == right[y]:
                x += 1
                y += 1
            frontier[at] = x
            if x >= a_end and y >= b_end:
                return _backtrack(trace, a_end, b_end)
    return []


def _backtrack(trace: list[list[int]], x: int, y: int) -> list[tuple[int, int]]:
    pairs: list[tuple[int, int]] = []
    for edits in range(len(trace) - 1, -1, -1):
        frontier = trace[edits]
        at = x - y + edits + 1
        is_insertion = at == 1 or (at != 2 * edits + 1 and frontier[at - 1] < frontier[at + 1])
        previous = at + 1 if is_insertion else at - 1
        previous_x = frontier[previous]
        previous_y = previous_x - (previous - edits - 1)
        while x > max(previous_x, 0) and y > max(previous_y, 0):
            x, y = x - 1, y - 1
            pairs.append((x, y))
        x, y = previous_x, previous_y
    pairs.reverse()
    return pairs
