"""What waits for a person, as a part of the clients: `client.reviews`."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.arguments import checked
from contextbase.wire.review import (
    ChoiceName,
    ClaimCreate,
    CommentCreate,
    CommentView,
    PickBody,
    ReleaseCreate,
    ReviewDetail,
    ReviewPage,
    ReviewReject,
    ReviewResolve,
    ReviewView,
    StateName,
)

__all__ = ["AsyncReviews"]

_REVIEWS: Final = "/api/v1/reviews"


class AsyncReviews:
    """What waits for a person. Every method raises `NotFound` for an item that you may not see."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def list(
        self,
        project: str,
        *,
        state: StateName | None = "open",
        path: str | None = None,
        author: str | None = None,
        claimed_by: str | None = None,
        before: UUID | None = None,
        limit: int = 50,
    ) -> ReviewPage:
        """Items, newest first: in a state (None: any), at or below a path, of an author, claimed by somebody. Pass the
        page's `next_before` for the next page."""
        return await self._connection.read(
            ReviewPage,
            _REVIEWS,
            project=project,
            state=state,
            path=path,
            author=author,
            claimed_by=claimed_by,
            before=before,
            limit=limit,
        )

    @checked
    async def get(self, project: str, review_id: UUID) -> ReviewDetail:
        """One item, merged with the head of this moment. Pass its `epoch` and `ours_seq` to `resolve`."""
        return await self._connection.read(ReviewDetail, f"{_REVIEWS}/{review_id}", project=project)

    @checked
    async def claim(self, project: str, review_id: UUID, *, take_over: bool = False) -> ReviewView:
        """Say that you are working on an item; others can still decide it. Raises `Conflict` if somebody else
        claimed it, unless you `take_over`."""
        body = ClaimCreate(project=project, take_over=take_over)
        return await self._connection.call(ReviewView, "POST", f"{_REVIEWS}/{review_id}/claim", body)

    @checked
    async def release(self, project: str, review_id: UUID) -> ReviewView:
        """Take your claim back."""
        body = ReleaseCreate(project=project)
        return await self._connection.call(ReviewView, "POST", f"{_REVIEWS}/{review_id}/release", body)

    @checked
    async def comment(self, project: str, review_id: UUID, text: str) -> CommentView:
        """Add a comment to an item's discussion."""
        body = CommentCreate(project=project, text=text)
        return await self._connection.call(CommentView, "POST", f"{_REVIEWS}/{review_id}/comments", body)

    @checked
    async def resolve(
        self,
        project: str,
        review_id: UUID,
        choice: ChoiceName,
        *,
        epoch: UUID | None = None,
        ours_seq: int | None = None,
        picks: Sequence[PickBody] = (),
        text: str | None = None,
        base64: str | None = None,
        hash: str | None = None,  # noqa: A002 - the field's name
        message: str = "",
    ) -> ReviewView:
        """Decide an item: `ours`, `theirs`, `suggested`, `picked` (with `picks`) or `edited` (with a content).

        `ours_seq` is the head you saw. Raises `Conflict` if the item is closed, or if the file has changed since."""
        body = ReviewResolve(
            project=project,
            choice=choice,
            picks=list(picks),
            text=text,
            base64=base64,
            hash=hash,
            epoch=epoch,
            ours_seq=ours_seq,
            message=message,
        )
        return await self._connection.call(ReviewView, "POST", f"{_REVIEWS}/{review_id}/resolve", body)

    @checked
    async def reject(self, project: str, review_id: UUID, *, reason: str = "") -> ReviewView:
        """Close an item without taking any of it in. Raises `Conflict` if it is closed already."""
        body = ReviewReject(project=project, reason=reason)
        return await self._connection.call(ReviewView, "POST", f"{_REVIEWS}/{review_id}/reject", body)
