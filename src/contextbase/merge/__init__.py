"""Three-way merge by file type: pure code, no I/O. docs/merging.md says what each type does."""

from contextbase.merge.engine import merge
from contextbase.merge.fold import Fold, fold
from contextbase.merge.markers import render_markers
from contextbase.merge.model import Conflict, Merged, Outcome, Place, PlaceKind, Reason, Sides
from contextbase.merge.policy import MergePolicy, MergeRule, Strategy
from contextbase.merge.tree import Change, Entry, EntryKind, Head, Settled, TreeConflict, Verdict, settle

__all__ = [
    "Change",
    "Conflict",
    "Entry",
    "EntryKind",
    "Fold",
    "Head",
    "MergePolicy",
    "MergeRule",
    "Merged",
    "Outcome",
    "Place",
    "PlaceKind",
    "Reason",
    "Settled",
    "Sides",
    "Strategy",
    "TreeConflict",
    "Verdict",
    "fold",
    "merge",
    "render_markers",
    "settle",
]
