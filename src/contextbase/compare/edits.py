"""Which lines differ between two texts: as git says, or, for those who ask thousands of times, almost so."""

from functools import lru_cache
from io import BytesIO
from itertools import chain
from typing import Final

from contextbase.compare.lines import Edit, diff
from contextbase.merge.budget import BudgetSpent, Steps
from contextbase.merge.matches import alike, differing_stretches
from contextbase.merge.steps import line_steps, steps_for

__all__ = ["is_coarse", "line_edits", "quick_edits"]

_LARGE: Final = 32 << 10
_MARGIN: Final = 8 << 10
_MOST_STEPS: Final = 12_000_000  # 0.2 s


def line_edits(old: bytes, new: bytes) -> list[Edit]:
    """What git would show as changed, in order; if that would take long to find, what `quick_edits` does."""
    if old == new:
        return []
    if is_coarse(old, new):
        return quick_edits(old, new)
    # A diff shifts its edits along equal lines around them, to where people expect them: hence the margin.
    head, tail = alike(old, new, margin=_MARGIN) if len(old) > _LARGE and len(new) > _LARGE else (0, 0)
    skipped = old.count(b"\n", 0, head)
    edits = diff(old[head : len(old) - tail], new[head : len(new) - tail])
    return [edit.shifted(skipped, skipped) for edit in edits] if skipped else edits


def is_coarse(old: bytes, new: bytes) -> bool:
    """Whether the texts differ so much that `line_edits` may show equal lines as replaced."""
    return line_steps(old, new, enough=_MOST_STEPS) > _MOST_STEPS


def quick_edits(old: bytes, new: bytes) -> list[Edit]:
    """As `line_edits`, many times faster. Of equal lines another may count as new, and so may one that moved far, or
    that stands in a text of which too much was changed."""
    if old == new:
        return []
    edits: list[Edit] = []
    steps = Steps(_MOST_STEPS)
    at = line = new_line = 0
    for start, end, new_start, new_end in differing_stretches(old, new):
        between = old.count(b"\n", at, start)
        line, new_line = line + between, new_line + between
        old_lines = BytesIO(old[start:end]).readlines()
        new_lines = BytesIO(new[new_start:new_end]).readlines()
        edits += [edit.shifted(line, new_line) for edit in _edits(old_lines, new_lines, steps)]
        line, new_line, at = line + len(old_lines), new_line + len(new_lines), end
    return edits


def _edits(old: list[bytes], new: list[bytes], steps: Steps) -> list[Edit]:
    replaced = [Edit(0, len(old), 0, len(new))]
    if not old or not new or len(old) == len(new) == 1:
        return replaced
    shared = {*old}.intersection(new)
    try:
        steps.tick(steps_for(sum(line in shared for line in chain(old, new)), len(old) + len(new)))
    except BudgetSpent:
        return replaced
    return diff(*_abridged(old, new))


def _abridged(*texts: list[bytes]) -> list[bytes]:
    """The texts with a short name for each line: libgit2 hashes what it compares, which takes longer than comparing."""
    lines = dict.fromkeys(chain.from_iterable(texts))
    names = dict(zip(lines, _short_names(len(lines).bit_length()), strict=False))
    return [b"".join(map(names.__getitem__, text)) for text in texts]


@lru_cache
def _short_names(bits: int) -> tuple[bytes, ...]:
    """As many as can be counted in that many bits: made once, because making them takes longer than their use."""
    return tuple(b"%x\n" % number for number in range(1 << bits))
