"""What was read of a request's body, so that the request can still be sent on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Final

from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from contextbase.errors import Conflict

__all__ = ["BodyRecorder", "ReceivedBody"]

RECEIVED: Final = "contextbase.received"


class ReceivedBody:
    """`most` bytes are kept. Whoever reads more has decided to answer the request itself."""

    def __init__(self, receive: Receive, most: int) -> None:
        self._receive = receive
        self._most = most
        self._pieces: list[bytes] = []
        self._size = 0
        self._has_ended = False
        self._is_dropped = False
        self._all_sent = asyncio.Event()

    async def receive(self) -> Message:
        """The application's, which reads as ever."""
        message = await self._receive()
        self._note(message)
        return message

    async def short(self, most: int) -> bytes | None:
        """All of it, if it has `most` bytes at the most; else None, and what was read is kept."""
        while not self._has_ended and self._size <= most:
            await self._read()
        return b"".join(self._pieces) if self._has_ended and self._size <= most else None

    async def pieces(self) -> AsyncIterator[bytes]:
        """All of it: what was read, then the rest as it comes. To be used once."""
        if self._is_dropped:
            raise Conflict("The request has begun to be answered elsewhere than where it must be; send it again.")
        for piece in self._pieces:
            yield piece
        self._pieces, self._is_dropped = [], True
        while not self._has_ended:
            yield await self._read()
        self._all_sent.set()

    def will_not_be_read(self) -> None:
        """All of it is known; nobody will ask for pieces."""
        self._all_sent.set()

    async def hung_up(self) -> None:
        """Until the client has gone, after it sent everything."""
        await self._all_sent.wait()
        while (await self._receive())["type"] != "http.disconnect":
            pass

    async def _read(self) -> bytes:
        message = await self._receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnect
        self._note(message)
        piece: bytes = message.get("body", b"")
        return piece

    def _note(self, message: Message) -> None:
        if message["type"] != "http.request":
            return
        piece = message.get("body", b"")
        self._has_ended = not message.get("more_body", False)
        self._size += len(piece)
        if self._is_dropped:
            return
        self._pieces.append(piece)
        if self._size > self._most:
            self._pieces, self._is_dropped = [], True


class BodyRecorder:
    """Middleware: every request's body is in its scope."""

    def __init__(self, app: ASGIApp, *, most: int) -> None:
        self._app = app
        self._most = most

    def __call__(self, scope: Scope, receive: Receive, send: Send) -> Awaitable[None]:
        if scope["type"] == "http":
            body = scope[RECEIVED] = ReceivedBody(receive, self._most)
            receive = body.receive
        return self._app(scope, receive, send)
