"""Three-way merge by file type: pure code, no I/O. docs/merging.md says what each type does."""

from contextbase.merge.engine import is_long_merge, merge
from contextbase.merge.fold import Fold, fold
from contextbase.merge.markers import render_markers
from contextbase.merge.model import ContestedPlace, MergeConflict, Merged, MergeOutcome, PlaceKind, Reason, Sides
from contextbase.merge.policy import MergePolicy, PathMergeRule, Strategy
from contextbase.merge.tree import (
    EntryKind,
    Head,
    Merging,
    Settled,
    TooLargeToMerge,
    TreeChange,
    TreeConflict,
    TreeEntry,
    Verdict,
    settle,
)

__all__ = [
    "ContestedPlace",
    "EntryKind",
    "Fold",
    "Head",
    "MergeConflict",
    "MergeOutcome",
    "MergePolicy",
    "Merged",
    "Merging",
    "PathMergeRule",
    "PlaceKind",
    "Reason",
    "Settled",
    "Sides",
    "Strategy",
    "TooLargeToMerge",
    "TreeChange",
    "TreeConflict",
    "TreeEntry",
    "Verdict",
    "fold",
    "is_long_merge",
    "merge",
    "render_markers",
    "settle",
]
