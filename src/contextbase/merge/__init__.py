"""Three-way merge by file type: pure code, no I/O."""

from contextbase.merge.engine import merge
from contextbase.merge.markers import render_markers
from contextbase.merge.model import Conflict, Merged, Outcome, Place, PlaceKind, Reason
from contextbase.merge.policy import MergePolicy, MergeRule, Strategy

__all__ = [
    "Conflict",
    "MergePolicy",
    "MergeRule",
    "Merged",
    "Outcome",
    "Place",
    "PlaceKind",
    "Reason",
    "Strategy",
    "merge",
    "render_markers",
]
