"""Bodies of the review queue."""

from datetime import datetime
from typing import Literal, Self
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field, model_validator

from contextbase.vocabulary import Kind
from contextbase.wire.commit import (
    CONTENT_HASH,
    ConflictPlace,
    ConflictSide,
    ConflictView,
    Epoch,
    ProjectName,
    SeqNumber,
)

__all__ = [
    "ChoiceName",
    "ClaimCreate",
    "CommentCreate",
    "CommentView",
    "PickBody",
    "ReleaseCreate",
    "ReviewDetail",
    "ReviewPage",
    "ReviewReject",
    "ReviewResolve",
    "ReviewSide",
    "ReviewView",
    "StateName",
    "SuggestionView",
]

StateName = Literal["open", "resolved", "rejected", "obsolete"]
ChoiceName = Literal["ours", "theirs", "edited", "picked", "suggested"]


class ClaimView(BaseModel):
    by: str = Field(description="Such as user:ann.")
    at: datetime


class ClosedView(BaseModel):
    by: str
    at: datetime
    seq: int | None = Field(description="The commit that settled it; null: there was nothing to change.")


class ReviewView(BaseModel):
    """A change that waits for a person, or waited."""

    id: UUID
    path: str = Field(description="Where its writer wants it to stand.")
    renamed_from: str | None = Field(description="Where its writer found it, if it is a rename.")
    state: StateName = Field(description="`obsolete`: the conflict went away.")
    reason: str = Field(
        description="critical, content, deleted-and-changed, renamed-twice, file-and-folder, folder-not-empty or "
        "kind-changed."
    )
    author: str
    kind: Kind = Field(description="Of what its writer wants there; `deleted`: nothing.")
    seq: int = Field(description="The commit that brought it.")
    side_version_id: UUID = Field(description="Where its writer's side is kept.")
    places: list[ConflictPlace] = Field(description="What is contested.")
    comments: int
    claim: ClaimView | None
    closed: ClosedView | None
    created_at: datetime


class ReviewPage(BaseModel):
    reviews: list[ReviewView]
    next_before: UUID | None = Field(
        description="Pass as `before` for the next page; null on the last. A page may be short and still have a next."
    )


class ReviewSide(BaseModel):
    """One of the three sides as it is stored."""

    path: str
    kind: Kind
    number: int | None = Field(description="The node's version; null: it is the side version.")
    hash: str | None
    size: int
    text: str | None = Field(description="The content, if it is text, not too long and was not purged.")
    base64: str | None = Field(description="Likewise, if it is not text.")


class SuggestionView(BaseModel):
    by: str
    at: datetime
    content: ConflictSide | None = Field(description="The file with what is suggested; null: it was of no use.")
    problem: str = Field(description="Why it was of no use.")


class CommentView(BaseModel):
    number: int
    author: str
    text: str
    at: datetime


class ReviewDetail(ReviewView):
    message: str = Field(description="Of the commit that brought it; empty when you may not see all of that.")
    epoch: UUID
    ours_seq: int = Field(description="The head that all of this is about: send both back with your decision.")
    base: ReviewSide | None = Field(description="What the writer started from.")
    ours: ReviewSide | None = Field(description="The head's.")
    theirs: ReviewSide | None = Field(description="The writer's.")
    draft: ConflictSide | None = Field(description="The merge as it is now, with markers around what is contested.")
    conflicts: list[ConflictView]
    by_conflict: bool = Field(description="Whether the conflicts can be chosen one by one.")
    suggestion: SuggestionView | None
    discussion: list[CommentView]


class ClaimCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    take_over: bool = Field(default=False, description="Even if somebody else has claimed it.")


class ReleaseCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName


class CommentCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    text: str = Field(min_length=1, max_length=10_000)


class PickBody(BaseModel):
    """The choice at one conflict: a side, or a text in its place."""

    model_config = ConfigDict(extra="forbid")

    conflict: int = Field(ge=1, le=1_000_000, description="Counted from 1.")
    side: Literal["ours", "theirs"] | None = None
    text: str | None = None

    @model_validator(mode="after")
    def _is_one_thing(self) -> Self:
        if (self.side is None) == (self.text is None):
            raise ValueError("give side or text")
        return self


class ReviewResolve(BaseModel):
    """`ours`: the head stays. `theirs`: the writer's text at what is contested. `edited`: a whole file of yours, as
    exactly one of `text`, `base64` and `hash`. `picked`: `picks`, one for each conflict. `suggested`: what a resolver
    suggested."""

    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    choice: ChoiceName
    picks: list[PickBody] = Field(default=[], max_length=10_000)
    text: str | None = None
    base64: str | None = None
    hash: str | None = Field(default=None, pattern=CONTENT_HASH)
    epoch: Epoch = None
    ours_seq: SeqNumber | None = Field(
        default=None, description="The head you were shown; null: the one at which the item was made."
    )
    message: str = Field(default="", max_length=10_000)

    @model_validator(mode="after")
    def _has_what_it_needs(self) -> Self:
        given = sum(content is not None for content in (self.text, self.base64, self.hash))
        if given != (self.choice == "edited"):
            raise ValueError("an edited file, and nothing else, has one of text, base64 and hash")
        if bool(self.picks) != (self.choice == "picked"):
            raise ValueError("picks go with the choice 'picked', and with no other")
        if self.choice == "edited" and self.ours_seq is None:
            raise ValueError("an edited file needs ours_seq, the head it was made from")
        return self


class ReviewReject(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project: ProjectName
    reason: str = Field(default="", max_length=10_000, description="Added to the discussion.")
