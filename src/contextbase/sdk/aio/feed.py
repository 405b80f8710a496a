"""A project's feed, as a part of the clients: `client.feed`."""

from collections.abc import AsyncGenerator
from typing import Final

from pydantic import TypeAdapter

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.aio.following import followed
from contextbase.sdk.arguments import checked
from contextbase.sdk.options import Received
from contextbase.wire.feed import FeedItemView, FeedPageView

__all__ = ["AsyncFeed"]

_FEED: Final = "/api/v1/feed"
_ITEM: Final[TypeAdapter[FeedItemView]] = TypeAdapter(FeedItemView)


class AsyncFeed:
    """What changes in a project: commits, leases, reviews and more. `path`: only what is at or below it."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def list(
        self, project: str, *, path: str | None = None, after: str | None = None, limit: int = 100, wait: float = 0.0
    ) -> FeedPageView:
        """What comes after a cursor; 'start' is the beginning, None is now. With `wait`, not before there is something
        or the time is over. Pass the page's `cursor` as `after` for the next page."""
        return await self._connection.read(
            FeedPageView,
            _FEED,
            read_seconds=wait + 30,
            project=project,
            path=path,
            after=after,
            limit=limit,
            wait=wait,
        )

    @checked
    def follow(
        self, project: str, *, path: str | None = None, after: str | None = None
    ) -> AsyncGenerator[Received[FeedItemView], None]:
        """Every change once, in order, for as long as the caller likes. Only a server that cannot be reached at first,
        or refuses, raises; a connection that is lost later is made again. Close it if you stop early
        (`contextlib.aclosing`)."""
        return followed(self._connection, _FEED, _ITEM, after, project=project, path=path)
