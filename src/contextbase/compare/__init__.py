"""What differs between two versions of a file, and which version each part of it comes from: pure code, no I/O."""

from contextbase.compare.blame import LineBlame, Run, blame_lines
from contextbase.compare.engine import compare
from contextbase.compare.model import (
    CellDiff,
    CompareLimits,
    DiffKind,
    DiffStatus,
    FileDiff,
    Hunk,
    Side,
    ValueChange,
    ValueChangeKind,
)
from contextbase.compare.part_blame import Part, PartBlame
from contextbase.compare.patch import apply, apply_cells
from contextbase.compare.render import render_changes, render_patch, render_unified, to_dict
from contextbase.compare.structure import apply_changes
from contextbase.compare.values import Value, pointer

__all__ = [
    "CellDiff",
    "CompareLimits",
    "DiffKind",
    "DiffStatus",
    "FileDiff",
    "Hunk",
    "LineBlame",
    "Part",
    "PartBlame",
    "Run",
    "Side",
    "Value",
    "ValueChange",
    "ValueChangeKind",
    "apply",
    "apply_cells",
    "apply_changes",
    "blame_lines",
    "compare",
    "pointer",
    "render_changes",
    "render_patch",
    "render_unified",
    "to_dict",
]
