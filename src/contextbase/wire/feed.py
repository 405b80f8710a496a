"""Bodies of the feed."""

from datetime import datetime
from typing import Annotated, Any, Literal
from uuid import UUID

from pydantic import BaseModel, Field

from contextbase.vocabulary import FileChangeKind, Kind, PrincipalKind, WayIn
from contextbase.wire.answer import AnswerView

__all__ = [
    "CommitItem",
    "EventAuthorView",
    "EventBodyView",
    "EventItem",
    "FeedChangeView",
    "FeedItemView",
    "FeedPageView",
    "SetAsideView",
]


class EventAuthorView(AnswerView):
    id: UUID
    kind: PrincipalKind
    name: str


class FeedChangeView(BaseModel):
    action: FileChangeKind = Field(description="As it looks to the reader.")
    path: str
    previous_path: str | None = Field(None, description="Where it was before it was renamed.")
    kind: Kind | None = Field(None, description="Null when it was deleted.")
    hash: str | None = Field(None, description="sha256 of the content; null for directories and what was deleted.")
    size: int = 0
    executable: bool = False


class SetAsideView(AnswerView):
    """What lost against the head, or waits for a review: the tree does not have it."""

    reason: Literal["superseded", "in_review"]
    path: str
    side_version_id: UUID = Field(description="Its content: `versions/content?side_version_id=`.")
    review_id: UUID | None


class CommitItem(BaseModel):
    type: Literal["commit"] = "commit"
    seq: int
    at: datetime
    author: EventAuthorView
    operator_type: WayIn
    message: str = Field(description="Empty when the reader may not see all of the commit.")
    changes: list[FeedChangeView] = Field(
        description="What it did to the tree; empty when all of it was set aside. At most 1000."
    )
    set_aside: list[SetAsideView] = Field(default=[], description="At most 1000.")
    left_off: int = Field(0, description="How many of both are not listed, when there are too many.")


class EventBodyView(BaseModel):
    """The whole payload, where the item has a preview: `GET /api/v1/events/body`."""

    hash: str = Field(description="sha256 of the payload's JSON.")
    size: int


class EventItem(BaseModel):
    type: Literal["event"] = "event"
    number: int
    kind: str
    at: datetime
    author: EventAuthorView | None
    path: str | None
    payload: dict[str, Any] = Field(description="A preview when `body` is set.")
    body: EventBodyView | None = Field(None, description="Set for a payload over 8 KiB.")


FeedItemView = Annotated[CommitItem | EventItem, Field(discriminator="type")]


class FeedPageView(BaseModel):
    items: list[FeedItemView]
    cursor: str = Field(description="Pass as `after` to go on. Moves on past what the reader may not see, too.")
    more: bool = Field(description="Whether there is more already.")
