"""What a merge answers: the bytes, how they came about, and what is still contested."""

from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from contextbase.merge.sniff import AS_IT_IS, Spelling
from contextbase.vocabulary import PlaceKind, Reason

__all__ = ["ContestedPlace", "MergeConflict", "MergeOutcome", "Merged", "PlaceKind", "Reason", "Sides"]


class MergeOutcome(StrEnum):
    UNCHANGED = "unchanged"  # the result is what is in the head already
    FAST_FORWARD = "fast-forward"  # the result is the writer's file as it is
    MERGED = "merged"  # the result holds the changes of both, or one side by policy
    CONFLICT = "conflict"  # there is no result; `partial` has ours at the contested places


@dataclass(frozen=True, kw_only=True, slots=True)
class ContestedPlace:
    kind: PlaceKind
    at: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class MergeConflict:
    """One contested place. A side is None where the thing does not exist on that side."""

    place: ContestedPlace
    reason: Reason
    base: bytes | None
    ours: bytes | None
    theirs: bytes | None
    suggestion: bytes | None = None  # what might well be meant here; never applied by itself


class Sides(NamedTuple):
    """A stretch of text that is contested, as each side has it."""

    base: bytes
    ours: bytes
    theirs: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class Merged:
    content: bytes | None  # None: the file is gone, or (outcome conflict) there is no result
    outcome: MergeOutcome
    strategy: str  # what decided: "trivial", "lines", "json", "last-writer", ...
    conflicts: tuple[MergeConflict, ...] = ()
    partial: bytes | None = None  # on conflict: everything uncontested merged, ours at the contested places
    pieces: tuple[bytes | Sides, ...] = ()  # on a text conflict: the whole file, agreed text and contested stretches
    spelling: Spelling = AS_IT_IS  # how `pieces` (UTF-8, `\n`) are written down in this file
    other: bytes | None = None  # the side that lost under last-writer, priority, ours or theirs, to be kept by the gate
    notes: tuple[str, ...] = ()  # what a person should know: a strategy that had to give way, and why
