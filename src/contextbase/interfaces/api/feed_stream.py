"""The feed as server-sent events. A reader costs a cursor and one task; what it is sent is encoded once for all."""

from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from functools import lru_cache
from typing import Final

from contextbase.interfaces.api.event_stream import Chunks
from contextbase.interfaces.api.feed_reader import FeedConnection
from contextbase.interfaces.api.item_views import item_view
from contextbase.streams.feed_model import Cursor, FeedCommit, FeedHeads, FeedPage
from contextbase.streams.model import StreamEvent
from contextbase.streams.project_feed import FeedFollower

__all__ = ["FeedSource", "in_chunks"]

_AT_ONCE: Final = 100
_MOST_CHUNK_BYTES: Final = 64 * 1024


class FeedSource:
    def __init__(self, reader: FeedConnection, heads: FeedHeads, cursor: Cursor) -> None:
        self._reader = reader
        self._heads = heads
        self._follower: FeedFollower  # while it is followed
        self.cursor = cursor

    @property
    def ended(self) -> bool:
        return self._follower.ended

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        async with self._reader.following(self._heads) as self._follower:
            yield

    async def read(self) -> Chunks | None:
        page = await self._reader.read(self._follower, self.cursor, _AT_ONCE)
        self.cursor = page.cursor
        return Chunks(chunks=_chunks(page), cursor=page.items[-1].cursor) if page.items else None

    async def wait(self, seconds: float) -> None:
        await self._follower.wait(self.cursor, seconds)


def in_chunks(events: Iterable[tuple[object, bytes]]) -> tuple[bytes, ...]:
    """Cursors and the events after which they stand, in pieces of a size that is sent at once."""
    chunks = [b""]
    for cursor, event in events:
        chunks[-1] += b"id: %b\n%b" % (str(cursor).encode(), event)
        if len(chunks[-1]) > _MOST_CHUNK_BYTES:
            chunks.append(b"")
    return tuple(chunk for chunk in chunks if chunk)


@lru_cache(maxsize=64)
def _chunks(page: FeedPage) -> tuple[bytes, ...]:
    """Readers who are shown the same share the page, and so its encoding."""
    return in_chunks((item.cursor, _event(item.body)) for item in page.items)


@lru_cache(maxsize=1024)
def _event(body: FeedCommit | StreamEvent) -> bytes:
    """Who sees all of a commit shares its object, and so its encoding."""
    view = item_view(body)
    return f"event: {view.type}\ndata: {view.model_dump_json()}\n\n".encode()
