"""The feed as server-sent events. A reader costs a cursor and one task; what it is sent is encoded once for all."""

import asyncio
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from contextbase.errors import ContextbaseError
from contextbase.feed.model import Author, Cursor, FeedChange, FeedCommit, FeedEvent, FeedHeads
from contextbase.interfaces.api.feed_reader import FeedReader
from contextbase.wire.feed import AuthorView, CommitItem, EventItem, FeedChangeView

__all__ = ["ABORT", "EVENT_STREAM", "FeedStream", "item_view"]

EVENT_STREAM: Final = "text/event-stream"
ABORT: Final = "contextbase.abort"
"""ASGI extension: a function that breaks the connection without waiting for what is still to be sent."""

HEARTBEAT_SECONDS: Final = 15.0
SLOWEST_SECONDS: Final = 20.0
_AT_ONCE: Final = 100
_MOST_CHUNK_BYTES: Final = 64 * 1024


class FeedStream(Response):
    media_type = EVENT_STREAM

    def __init__(
        self, reader: FeedReader, heads: FeedHeads, cursor: Cursor, *, slowest_seconds: float = SLOWEST_SECONDS
    ) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._reader = reader
        self._heads = heads
        self._cursor = cursor
        self._slowest_seconds = slowest_seconds

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive), name="feed-reader-gone")
        abort: Callable[[], None] | None = scope.get("extensions", {}).get(ABORT)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await self._follow(send, gone)
            await self._push(send, b"", more=False)
        except TimeoutError:
            # It reads more slowly than things happen. It resumes from its last cursor when it comes back.
            if abort is None:
                raise
            abort()
            await gone
        finally:
            gone.cancel()

    async def _follow(self, send: Send, gone: "asyncio.Task[None]") -> None:
        clock = asyncio.get_running_loop()
        cursor = sent = self._cursor
        await self._push(send, b"id: %b\nretry: 1000\n\n" % str(sent).encode())
        beat_at = clock.time() + HEARTBEAT_SECONDS
        async with self._reader.following(self._heads) as follower:
            while not (gone.done() or follower.ended):
                try:
                    page = await self._reader.read(follower, cursor, _AT_ONCE)
                except ContextbaseError:
                    return  # whoever asks again is told why
                before, cursor = cursor, page.cursor
                if page.items:
                    chunk = b""
                    for item in page.items:
                        chunk += b"id: %b\n%b" % (str(item.cursor).encode(), _event(item.body))
                        if len(chunk) > _MOST_CHUNK_BYTES:
                            await self._push(send, chunk)
                            chunk = b""
                    if chunk:
                        await self._push(send, chunk)
                    sent = page.items[-1].cursor
                    beat_at = clock.time() + HEARTBEAT_SECONDS
                elif clock.time() >= beat_at:
                    # What was passed over shows here only, so that it does not tell when it landed.
                    await self._push(send, b": .\n\n" if sent == cursor else b"id: %b\n\n" % str(cursor).encode())
                    sent, beat_at = cursor, clock.time() + HEARTBEAT_SECONDS
                elif before == cursor:
                    await follower.wait(beat_at - clock.time())

    async def _push(self, send: Send, chunk: bytes, *, more: bool = True) -> None:
        """`send` waits while the connection's buffer is full, so a slow reader never holds more than that."""
        async with asyncio.timeout(self._slowest_seconds):
            await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@lru_cache(maxsize=1024)
def _event(body: FeedCommit | FeedEvent) -> bytes:
    """Readers who see all of a commit share its object, and so its encoding."""
    view = item_view(body)
    return f"event: {view.type}\ndata: {view.model_dump_json()}\n\n".encode()


def item_view(body: FeedCommit | FeedEvent) -> CommitItem | EventItem:
    if isinstance(body, FeedCommit):
        return CommitItem(
            seq=body.seq,
            at=body.at,
            author=_author_view(body.author),
            operator_type=body.operator_type,
            message=body.message,
            changes=[_change_view(change) for change in body.changes],
            left_off=body.left_off,
        )
    return EventItem(
        number=body.number,
        kind=body.kind,
        at=body.at,
        author=None if body.author is None else _author_view(body.author),
        path=body.path,
        payload=dict(body.payload),
    )


def _author_view(author: Author) -> AuthorView:
    return AuthorView(id=author.id, kind=author.kind, name=author.name)


def _change_view(change: FeedChange) -> FeedChangeView:
    return FeedChangeView(
        action=change.action.value,
        path=change.path,
        previous_path=change.previous_path,
        kind=change.kind or None,
        hash=None if change.content_hash is None else str(change.content_hash),
        size=change.size,
        executable=change.executable,
    )
