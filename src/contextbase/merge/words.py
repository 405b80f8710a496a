"""A text of which both sides changed words: the side that has all changes, or a suggestion, which is never applied,
since half of such guesses are wrong."""

import re
from collections import Counter
from typing import Final

from contextbase.merge.alignment import hunks
from contextbase.merge.budget import Bound, BudgetSpent, Steps

__all__ = ["having_both", "suggest"]

_WORD: Final = re.compile(
    r"\d+(?:\.\w+)+|\w+|\s|[^\w\s]"
)  # a version is one word: half of one and half of another is none
_NAME: Final = re.compile(r"\w+")
_MAX_LENGTH: Final = 20_000
_MAX_PARAGRAPH: Final = 1_000  # in longer texts hardly ever all changes are on one side
_STEPS: Final = 400_000  # 0.05 s
_STEPS_FOR_BOTH: Final = 4_000_000


def suggest(base: bytes, ours: bytes, theirs: bytes, *, bound: Bound | None = None) -> bytes | None:
    """What the contested text might be meant to be: the side that has the other's addition in it, or both sides'
    changes to different words; None when neither fits, or when it takes too long to find out."""
    if not base:
        longer, shorter = (ours, theirs) if len(ours) > len(theirs) else (theirs, ours)
        return longer if shorter in longer else None
    if max(len(base), len(ours), len(theirs)) > _MAX_LENGTH:
        return None
    try:
        merged = _merge_words(base.decode(), ours.decode(), theirs.decode(), bound or Steps(_STEPS))
    except (UnicodeDecodeError, BudgetSpent):
        return None
    return None if merged is None else merged.encode()


def having_both(base: str, ours: str, theirs: str, *, bound: Bound | None = None) -> str | None:
    """The side that changed every word that the other did, in the same way; None if there is none."""
    if max(len(base), len(ours), len(theirs)) > _MAX_PARAGRAPH:
        return None
    if _has_word_of_its_own(base, ours, theirs) and _has_word_of_its_own(base, theirs, ours):
        return None  # as most
    was, mine, other = (_WORD.findall(side) for side in (base, ours, theirs))
    budget = bound or Steps(_STEPS_FOR_BOTH)
    try:
        if _may_have(was, mine, other) and _edits(was, other, budget) <= _edits(was, mine, budget):
            return ours
        if _may_have(was, other, mine) and _edits(was, mine, budget) <= _edits(was, other, budget):
            return theirs
    except BudgetSpent:
        return None
    return None


def _has_word_of_its_own(base: str, side: str, other: str) -> bool:
    new = _NAME.findall(" ".join({*side.split()}.difference(base.split())))
    return any(word not in other and word not in base for word in new)


def _may_have(base: list[str], longer: list[str], shorter: list[str]) -> bool:
    """Whether one side may have the other's changes: what can be told without looking where they are."""
    was, more, less = Counter(base), Counter(longer), Counter(shorter)
    return less - was <= more - was and was - less <= was - more


def _edits(base: list[str], side: list[str], budget: Bound) -> set[tuple[int, int, tuple[str, ...]]]:
    return {(hunk.start, hunk.end, tuple(side[hunk.side_start : hunk.side_end])) for hunk in hunks(base, side, budget)}


def _merge_words(base: str, ours: str, theirs: str, budget: Bound) -> str | None:
    was, mine, other = (_WORD.findall(side) for side in (base, ours, theirs))
    edits = [(hunk.start, hunk.end, mine[hunk.side_start : hunk.side_end]) for hunk in hunks(was, mine, budget)]
    for hunk in hunks(was, other, budget):
        edit = (hunk.start, hunk.end, other[hunk.side_start : hunk.side_end])
        if edit not in edits:
            edits.append(edit)
    edits.sort(key=lambda edit: edit[:2])
    words: list[str] = []
    at = 0
    last_start = -1
    for start, end, written in edits:
        if start < at or start == last_start:
            return None
        words += [*was[at:start], *written]
        at, last_start = end, start
    return "".join([*words, *was[at:]])
