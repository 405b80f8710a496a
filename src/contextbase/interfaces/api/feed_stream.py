"""The feed as server-sent events. A reader costs a cursor and one task; what it is sent is encoded once for all."""

import asyncio
import logging
from collections.abc import Callable
from functools import lru_cache
from typing import Final

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from contextbase.errors import ContextbaseError
from contextbase.feed.model import Author, Cursor, FeedChange, FeedCommit, FeedEvent, FeedHeads, FeedPage, SetAside
from contextbase.interfaces.api.feed_reader import FeedReader
from contextbase.interfaces.api.protocol import ABORT
from contextbase.wire.feed import AuthorView, CommitItem, EventItem, FeedChangeView, SetAsideView

__all__ = ["EVENT_STREAM", "FeedStream", "item_view"]

_log = logging.getLogger(__name__)

EVENT_STREAM: Final = "text/event-stream"

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
        sender = _Sender(send, scope.get("extensions", {}).get(ABORT), self._slowest_seconds)
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await self._follow(sender, gone)
            await sender.push(b"", more=False)
        except ConnectionAbortedError:
            _log.info("a reader of the feed was too slow; its connection was broken")
        finally:
            sender.close()
            gone.cancel()

    async def _follow(self, sender: "_Sender", gone: "asyncio.Task[None]") -> None:
        clock = asyncio.get_running_loop()
        cursor = sent = self._cursor
        await sender.push(b"id: %b\nretry: 1000\n\n" % str(sent).encode())
        beat_at = clock.time() + HEARTBEAT_SECONDS
        async with self._reader.following(self._heads) as follower:
            while not (gone.done() or follower.ended):
                try:
                    page = await self._reader.read(follower, cursor, _AT_ONCE)
                except ContextbaseError:
                    return  # whoever asks again is told why
                cursor = page.cursor
                if page.items:
                    for chunk in _chunks(page):
                        await sender.push(chunk)
                    sent = page.items[-1].cursor
                    beat_at = clock.time() + HEARTBEAT_SECONDS
                elif clock.time() >= beat_at:
                    # What was passed over shows here only, so that it does not tell when it landed.
                    await sender.push(b": .\n\n" if sent == cursor else b"id: %b\n\n" % str(cursor).encode())
                    sent, beat_at = cursor, clock.time() + HEARTBEAT_SECONDS
                await follower.wait(cursor, beat_at - clock.time())


class _Sender:
    """Sends until the reader stops reading: then the connection is broken. It resumes from its last cursor.

    `send` waits while the connection's buffer is full, so a reader never holds more of the server than that.
    """

    def __init__(self, send: Send, abort: Callable[[], None] | None, slowest_seconds: float) -> None:
        self._send = send
        self._abort = abort or self._cancel
        self._slowest_seconds = slowest_seconds
        self._clock = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._since: float | None = None
        self._aborted = False
        self._check_later()

    async def push(self, chunk: bytes, *, more: bool = True) -> None:
        self._since = self._clock.time()
        await self._send({"type": "http.response.body", "body": chunk, "more_body": more})
        self._since = None
        if self._aborted:
            raise ConnectionAbortedError

    def close(self) -> None:
        self._timer.cancel()

    def _check_later(self) -> None:
        """One timer that looks now and then is much cheaper than one for each of very many sends."""
        self._timer = self._clock.call_later(self._slowest_seconds / 2, self._check)

    def _check(self) -> None:
        if self._since is not None and self._clock.time() - self._since > self._slowest_seconds:
            self._aborted = True
            self._abort()
        else:
            self._check_later()

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


@lru_cache(maxsize=64)
def _chunks(page: FeedPage) -> tuple[bytes, ...]:
    """Readers who are shown the same share the page, and so its encoding."""
    chunks = [b""]
    for item in page.items:
        chunks[-1] += b"id: %b\n%b" % (str(item.cursor).encode(), _event(item.body))
        if len(chunks[-1]) > _MOST_CHUNK_BYTES:
            chunks.append(b"")
    return tuple(chunk for chunk in chunks if chunk)


@lru_cache(maxsize=1024)
def _event(body: FeedCommit | FeedEvent) -> bytes:
    """Who sees all of a commit shares its object, and so its encoding."""
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
            set_aside=[_set_aside_view(aside) for aside in body.set_aside],
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


def _set_aside_view(aside: SetAside) -> SetAsideView:
    return SetAsideView.model_validate(
        {
            "reason": aside.reason,
            "path": aside.path,
            "side_version_id": aside.side_version_id,
            "review_id": aside.review_id,
        }
    )


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
