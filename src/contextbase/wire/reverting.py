"""Bodies of going back: rollback, undo, bringing back what was set aside, purge."""

from typing import Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contextbase.vocabulary import DiffStatus
from contextbase.wire.commit import CONTENT_HASH, ChangeView, ProjectName, SeqNumber

__all__ = [
    "BringBackCreate",
    "PreviewFileView",
    "PurgeCreate",
    "PurgeView",
    "PurgedFileView",
    "RevertingView",
    "RollbackCreate",
    "UndoCreate",
]

_MESSAGE = Field(default="", max_length=10_000, description="Why; it is in the log.")
_DRY_RUN = Field(default=False, description="Only show what would be done.")


class RollbackCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    to: str | None = Field(
        default=None, min_length=1, max_length=200, description="A snapshot: a seq, head~3, a time, a tag's name."
    )
    path: str | None = Field(
        default=None, min_length=1, max_length=2048, description="A file, or a folder and all in it; null: everything."
    )
    number: int | None = Field(
        default=None, ge=1, le=2**31 - 1, description="In the place of `to`: the version of the file at `path`."
    )
    message: str = _MESSAGE
    dry_run: bool = _DRY_RUN

    @model_validator(mode="after")
    def _names_one_past(self) -> Self:
        if (self.to is None) == (self.number is None):
            raise ValueError("say to where: `to` a snapshot, or the `number` of a version")
        if self.number is not None and self.path is None:
            raise ValueError("a version is one of a file: give its `path`")
        return self


class UndoCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    principal: str | None = Field(default=None, min_length=1, max_length=120, description="Such as agent:indexer.")
    run: str | None = Field(default=None, min_length=1, max_length=200, description="As the commits name it.")
    seqs: list[SeqNumber] | None = Field(
        default=None, min_length=1, max_length=10_000, description="Commits; not together with principal or run."
    )
    first: SeqNumber | None = Field(default=None, description="With principal or run: not what was before this commit.")
    last: SeqNumber | None = Field(default=None, description="With principal or run: not what came after this commit.")
    path: str | None = Field(default=None, min_length=1, max_length=2048, description="Only a file, or below a folder.")
    message: str = _MESSAGE
    dry_run: bool = _DRY_RUN

    @model_validator(mode="after")
    def _names_somebody_s_work(self) -> Self:
        if (self.seqs is None) == (self.principal is None and self.run is None):
            raise ValueError("say what to undo: a principal, a run (or both), or seqs")
        if self.seqs is not None and (self.first is not None or self.last is not None):
            raise ValueError("first and last go with a principal or a run")
        return self


class BringBackCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    side_version_id: UUID
    message: str = _MESSAGE


class PurgeCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    path: str | None = Field(
        default=None, min_length=1, max_length=2048, description="All that ever stood there; of a folder, below it."
    )
    hash: str | None = Field(default=None, pattern=CONTENT_HASH, description="One content.")
    confirm: str = Field(default="", max_length=200, description="The project's name: a purge cannot be undone.")
    dry_run: bool = _DRY_RUN

    @model_validator(mode="after")
    def _names_something(self) -> Self:
        if (self.path is None) == (self.hash is None):
            raise ValueError("say what to purge: a path, or a content's hash")
        return self


class PreviewFileView(BaseModel):
    """What would happen to a file."""

    path: str
    old_path: str | None = Field(description="Where it is now; null: it is not there.")
    new_path: str | None = Field(description="Where it would be; null: it would be gone.")
    status: DiffStatus
    added_lines: int
    removed_lines: int
    patch: str = Field(description="As git writes it.")


class RevertingView(BaseModel):
    seqs: list[int] = Field(description="The commits that were made; none: there was nothing to do, or a dry run.")
    changes: list[ChangeView] = Field(description="What became of each; those in review are what others built on.")
    preview: list[PreviewFileView] = Field(description="Of a dry run.")
    contested: list[str] = Field(description="Of a dry run: where a person will have to decide.")


class PurgedFileView(BaseModel):
    project_id: UUID
    path: str


class PurgeView(BaseModel):
    hashes: list[str] = Field(description="The contents that are, or would be, gone.")
    deleted: list[PurgedFileView] = Field(description="Files that held one of them, and are or would be deleted.")
    projects: list[UUID] = Field(description="In whose history or sessions they were.")
    session_files: int = Field(description="Files in snapshots of sessions that are, or would be, gone.")
    attachments: int = Field(description="Files sent with messages that are, or would be, gone.")
    purged: bool
