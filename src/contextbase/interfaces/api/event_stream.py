"""Server-sent events: what a source has, as it comes, for as long as both sides like."""

import asyncio
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from typing import Final, Protocol

from fastapi.responses import Response
from starlette.types import Receive, Scope, Send

from contextbase.errors import ContextbaseError

__all__ = ["EVENT_STREAM", "STREAMED_EVENTS", "Chunks", "EventSource", "EventStream"]

EVENT_STREAM: Final = "text/event-stream"
# In the API's document: each event of a stream.
STREAMED_EVENTS: Final = {
    EVENT_STREAM: {
        "schema": {
            "type": "object",
            "properties": {"event": {"type": "string"}, "data": {"type": "string"}},
        }
    }
}

HEARTBEAT_SECONDS: Final = 15.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Chunks:
    """Encoded events, and the cursor after the last of them."""

    chunks: tuple[bytes, ...]
    cursor: object


class EventSource(Protocol):
    """What one connection is sent. A cursor is anything that compares, and is sent as its text."""

    @property
    def cursor(self) -> object:
        """Everything up to it was read or passed over."""
        ...

    @property
    def ended(self) -> bool:
        """Whether the server stops."""
        ...

    def following(self) -> AbstractAsyncContextManager[None]:
        """`read` and `wait` work while the block lasts."""
        ...

    async def read(self) -> Chunks | None:
        """What comes after the cursor, which moves on; None if nothing of it is to be sent. Raises when the caller may
        not read any more."""
        ...

    async def wait(self, seconds: float) -> None:
        """Until there may be something new; at most about a second."""
        ...


class EventStream(Response):
    media_type = EVENT_STREAM

    def __init__(
        self,
        source: EventSource,
        *,
        heartbeat_seconds: float = HEARTBEAT_SECONDS,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        super().__init__(headers=headers)
        del self.headers["content-length"]
        self._source = source
        self._heartbeat_seconds = heartbeat_seconds

    async def __call__(self, _scope: Scope, receive: Receive, send: Send) -> None:
        gone = asyncio.create_task(_until_gone(receive), name="stream-reader-gone")
        try:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            await self._follow(send, gone)
            await _push(send, b"", more=False)
        finally:
            gone.cancel()

    async def _follow(self, send: Send, gone: "asyncio.Task[None]") -> None:
        clock, source = asyncio.get_running_loop(), self._source
        sent = source.cursor
        await _push(send, b"id: %b\nretry: 1000\n\n" % str(sent).encode())
        beat_at = clock.time() + self._heartbeat_seconds
        async with source.following():
            while not (gone.done() or source.ended):
                try:
                    found = await source.read()
                except ContextbaseError:
                    return  # whoever asks again is told why
                if found is not None:
                    for chunk in found.chunks:
                        await _push(send, chunk)
                    sent, beat_at = found.cursor, clock.time() + self._heartbeat_seconds
                elif clock.time() >= beat_at:
                    # What was passed over shows here only, so that it does not tell when it landed.
                    cursor = source.cursor
                    await _push(send, b": .\n\n" if sent == cursor else b"id: %b\n\n" % str(cursor).encode())
                    sent, beat_at = cursor, clock.time() + self._heartbeat_seconds
                await source.wait(beat_at - clock.time())


async def _push(send: Send, chunk: bytes, *, more: bool = True) -> None:
    """Waits while the connection's buffer is full, so a reader never holds more of the server than that. The server
    closes the connection of a reader that stops reading; it resumes from its last cursor."""
    await send({"type": "http.response.body", "body": chunk, "more_body": more})


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
