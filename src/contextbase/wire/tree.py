"""Bodies of checkouts and versions."""

from datetime import datetime
from typing import Annotated, Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contextbase.vocabulary import Kind, ReviewState, WayIn
from contextbase.wire.answer import CONTENT_HASH, WAY_IN, AnswerView, HashText
from contextbase.wire.commit import MOST_SEQ, Epoch, ProjectName

__all__ = [
    "CheckoutRequest",
    "CheckoutView",
    "CommitAuthorView",
    "EntryView",
    "SideVersionPage",
    "SideVersionView",
    "VersionPage",
    "VersionView",
]


class CheckoutRequest(BaseModel):
    """What to read: `paths`, or everything below `prefix` (null: the whole tree)."""

    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    paths: Annotated[list[Annotated[str, Field(max_length=2048)]], Field(max_length=1000)] | None = None
    prefix: str | None = Field(default=None, max_length=2048)
    recursive: bool = Field(default=True, description="False: one folder's entries, without contents.")
    seq: Annotated[int, Field(ge=0, le=MOST_SEQ)] | None = Field(
        default=None, description="The snapshot; null: the head."
    )
    epoch: Epoch = None
    contents: bool = Field(
        default=False, description="With the contents, up to 8 MiB in all; the rest comes by reference."
    )
    after: str = Field(
        default="", max_length=2048, pattern=r"^[^\x00]*$", description="`next_after` of the page before."
    )
    limit: Annotated[int, Field(ge=1, le=10_000)] = 1000

    @model_validator(mode="after")
    def _asks_one_thing(self) -> Self:
        if self.paths is not None and (self.prefix is not None or self.after):
            raise ValueError("give paths, or prefix and after, not both")
        if not self.recursive and (self.contents or self.paths is not None):
            raise ValueError("recursive=false lists one folder: it takes neither contents nor paths")
        return self


class EntryView(BaseModel):
    """A file, link or folder in a snapshot. A folder that only its contents imply has no node."""

    path: str
    kind: Kind
    node_id: UUID | None
    number: int | None = Field(description="The node's version: its base version, for a change made from this.")
    seq: int | None = Field(description="The commit that wrote this version.")
    hash: str | None
    size: int
    executable: bool
    mime: str
    text: str | None = Field(default=None, description="The content, if asked for and it is text.")
    base64: str | None = Field(default=None, description="The content, if asked for and it is not text.")


class CheckoutView(BaseModel):
    project_id: UUID
    epoch: UUID = Field(description="Renewed by a restore. A seq means something within its epoch alone.")
    seq: int = Field(description="The snapshot that was read: the `base_seq` of a commit made from it.")
    entries: list[EntryView]
    missing: list[str] = Field(description="Of `paths`: those where there is nothing you may read.")
    next_after: str | None = Field(description="Pass as `after`, with this `seq`, for the next page; null on the last.")


class CommitAuthorView(AnswerView):
    principal: str = Field(description="Such as agent:indexer.")
    operator_type: WayIn = Field(validation_alias=WAY_IN)
    message: str = Field(description="Empty when you may not see all of the commit.")
    at: datetime


class VersionView(BaseModel):
    node_id: UUID
    number: int
    seq: int
    path: str
    kind: Kind
    hash: str | None
    size: int
    executable: bool
    mime: str
    base_number: int | None = Field(description="The version it was made from.")
    merged_number: int | None = Field(description="The head it was merged with.")
    sent_hash: str | None = Field(description="What the writer sent, when the result differs.")
    author: CommitAuthorView


class VersionPage(BaseModel):
    versions: list[VersionView]
    next_before: int | None = Field(description="Pass as `before` for the next page; null on the last.")


class SideVersionView(AnswerView):
    """What lost against the head, or waits for a review."""

    id: UUID
    seq: int
    node_id: UUID
    path: str
    reason: Literal["superseded", "in_review"]
    kind: Kind
    hash: HashText | None = Field(validation_alias=CONTENT_HASH)
    size: int
    base_number: int | None
    review_id: UUID | None
    review_state: ReviewState | None
    author: CommitAuthorView


class SideVersionPage(BaseModel):
    side_versions: list[SideVersionView]
    next_before: UUID | None = Field(description="Pass as `before` for the next page; null on the last.")
