"""Bodies of searches."""

from uuid import UUID

from pydantic import BaseModel, Field

from contextbase.vocabulary import SkipReason, StopReason

__all__ = ["ContentMatchPage", "FileMatchView", "LineMatchView", "NameMatchPage", "SkippedFileView"]


class LineMatchView(BaseModel):
    number: int = Field(description="Counted from 1.")
    text: str = Field(description="Without its end; of a long line, a part with the first match.")
    ranges: list[tuple[int, int]] | None = Field(
        description="Where `text` matches: start and end, in characters. Null: the line is context."
    )
    is_cut: bool = Field(description="Whether the line is longer than `text`.")


class FileMatchView(BaseModel):
    path: str
    lines: list[LineMatchView]


class SkippedFileView(BaseModel):
    """A file that was not searched, though it may hold what was looked for."""

    path: str
    reason: SkipReason


class ContentMatchPage(BaseModel):
    project_id: UUID
    seq: int = Field(description="The snapshot that was searched; of a workspace, the one it is based on.")
    files: list[FileMatchView] = Field(description="In path order.")
    skipped: list[SkippedFileView]
    stopped_by: StopReason | None = Field(description="Why the page ended before the search did; null at the end.")
    cursor: str | None = Field(description="Pass it for the next page, with the same question; null at the end.")


class NameMatchPage(BaseModel):
    project_id: UUID
    seq: int
    paths: list[str] = Field(description="The best first; without a name to look for, in path order.")
    cursor: str | None
