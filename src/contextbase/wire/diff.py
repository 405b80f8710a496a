"""Bodies of comparisons."""

from typing import Literal
from uuid import UUID

from pydantic import BaseModel, Field

from contextbase.vocabulary import DiffKind, DiffStatus, ValueChangeKind

__all__ = ["CellView", "ComparedView", "DiffPageView", "FileDiffView", "HunkView", "SideView", "ValueChangeView"]


class SideView(BaseModel):
    """The file on one side."""

    number: int = Field(description="Its version.")
    seq: int = Field(description="The commit that wrote this version.")
    kind: Literal["file", "symlink", "directory"]
    size: int
    hash: str | None
    mime: str | None
    executable: bool


class HunkView(BaseModel):
    header: str
    old_start: int
    old_count: int
    new_start: int
    new_count: int
    lines: list[str] = Field(description="Each with a mark in front: space, - or +.")


class ValueChangeView(BaseModel):
    """A value of JSON, YAML or TOML that came, went, became another or stands elsewhere."""

    kind: ValueChangeKind
    old_pointer: str | None
    new_pointer: str | None
    old: str | None = Field(description="As it is written there.")
    new: str | None


class CellView(BaseModel):
    """A notebook's cell that changed. Positions count from 0."""

    kind: ValueChangeKind
    cell: str | None = Field(description="Its id, if the notebook gives cells one.")
    type: str
    old_position: int | None
    new_position: int | None
    changed: list[str] = Field(description="Besides its source: type, outputs, metadata.")
    hunks: list[HunkView]


class ComparedView(BaseModel):
    """What every view of a comparison shows, whatever it compares."""

    path: str = Field(description="Where it stands, or stood last.")
    old_path: str | None
    new_path: str | None
    status: DiffStatus
    kind: DiffKind = Field(description="How the contents could be compared.")
    added_lines: int
    removed_lines: int
    hunks: list[HunkView]
    changes: list[ValueChangeView]
    cells: list[CellView]
    notes: list[str]
    patch: str | None = Field(default=None, description="If asked for: as git writes it.")
    values: str | None = Field(default=None, description="If a patch was asked for: changed values and cells, as text.")


class FileDiffView(ComparedView):
    node_id: UUID
    old: SideView | None
    new: SideView | None


class DiffPageView(BaseModel):
    old: int = Field(description="The snapshot before.")
    new: int = Field(description="The snapshot after.")
    files: list[FileDiffView]
    next_after: str | None = Field(
        description="Pass as `after`, with this `old` and `new`, for the next page; null on the last."
    )
