"""HTTP/1.1 over one byte stream, such as a stream of a sandbox's channel, answered by an ASGI application.

What is on the other side is hostile: heads, bodies and waits are bounded, and a broken rule ends the connection."""

import asyncio
import contextlib
import json
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from dataclasses import dataclass
from typing import Any, Final, Protocol

import h11

__all__ = ["AsgiApp", "AsgiReceive", "AsgiSend", "ByteStream", "HttpLimits", "serve", "whole_body"]

_log = logging.getLogger(__name__)

AsgiMessage = MutableMapping[str, Any]
AsgiReceive = Callable[[], Awaitable[AsgiMessage]]
AsgiSend = Callable[[AsgiMessage], Awaitable[None]]
AsgiApp = Callable[[MutableMapping[str, Any], AsgiReceive, AsgiSend], Awaitable[None]]

_READ_AHEAD: Final = 4  # pieces read before somebody wants them, so that the end of a stream is noticed at once
_PER_CONNECTION: Final = frozenset({b"connection", b"keep-alive", b"transfer-encoding"})  # h11 writes these
_REASONS: Final = {400: b"Bad Request", 408: b"Request Timeout", 413: b"Content Too Large"}


class ByteStream(Protocol):
    """One connection, both ways."""

    async def read(self) -> bytes:
        """The next bytes; b"" at the end. Raises `OSError` when the other side cut it."""
        ...

    async def write(self, data: bytes) -> None:
        """Returns when there is room for more. Raises `OSError` when the other side cut it."""
        ...

    async def end(self) -> None:
        """Nothing more will be written. Raises `OSError` when the other side cut it."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpLimits:
    head_bytes: int = 65_536
    body_bytes: int = 32 * 1024 * 1024
    idle_seconds: float = 900.0  # between two requests
    read_seconds: float = 60.0  # for the next piece of a request that has begun
    write_seconds: float = 300.0  # for the other side to take a piece of an answer
    cancel_seconds: float = 10.0  # for an application to end after the other side has gone


async def serve(
    stream: ByteStream, app: AsgiApp, state: Mapping[str, Any] | None = None, *, limits: HttpLimits | None = None
) -> None:
    """Answer requests until the stream ends. `state` reaches the application as `scope["state"]`: what the server
    knows of the stream, which the other side cannot forge. A client that goes away cancels the application."""
    connection = _Connection(stream, app, dict(state or {}), limits or HttpLimits())
    await connection.run()


class _Refused(Exception):
    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class _Gone(Exception):
    """The other side ended or cut the stream."""


def _tells_of_nothing_but_gone(error: BaseException) -> bool:
    """Applications with tasks of their own raise groups."""
    return isinstance(error, BaseExceptionGroup) and error.split(_Gone)[1] is None


class _Incoming:
    """The one reader of a stream. Reading it is never cancelled half-way: a piece could be lost then."""

    def __init__(self, stream: ByteStream) -> None:
        self._stream = stream
        self._pieces: asyncio.Queue[bytes] = asyncio.Queue(_READ_AHEAD)
        self.ended = asyncio.Event()

    async def run(self) -> None:
        try:
            while piece := await self._stream.read():
                await self._pieces.put(piece)
        except OSError:
            pass
        self.ended.set()
        await self._pieces.put(b"")

    async def piece(self, seconds: float) -> bytes:
        async with asyncio.timeout(seconds):
            return await self._pieces.get()


class _Connection:
    def __init__(self, stream: ByteStream, app: AsgiApp, state: dict[str, Any], limits: HttpLimits) -> None:
        self._stream = stream
        self._app = app
        self._state = state
        self._limits = limits
        self._incoming = _Incoming(stream)
        self._http = h11.Connection(h11.SERVER, max_incomplete_event_size=limits.head_bytes)
        self._has_begun = False  # to answer the current request

    async def run(self) -> None:
        reader = asyncio.create_task(self._incoming.run())
        try:
            while await self._exchange():
                self._http.start_next_cycle()
                self._has_begun = False
        except _Refused as refused:
            await self._refuse(refused.status, str(refused))
        except (_Gone, TimeoutError, h11.LocalProtocolError):
            pass
        finally:
            reader.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await reader
            with contextlib.suppress(OSError):  # a time-out is one too
                async with asyncio.timeout(self._limits.write_seconds):
                    await self._stream.end()

    async def _exchange(self) -> bool:
        """One request and its answer; whether another may follow."""
        request = await self._head()
        if request is None:
            return False
        body = _Body(self._next_event, self._http, self._write, self._limits)
        body.check_announced(request)
        application = asyncio.ensure_future(self._app(self._scope(request), body.receive, self._sender(request)))
        gone = asyncio.create_task(self._incoming.ended.wait())
        try:
            await asyncio.wait({application, gone}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            gone.cancel()
            if not application.done():
                application.cancel()
                await asyncio.wait({application}, timeout=self._limits.cancel_seconds)
        if not application.done() or application.cancelled():
            raise _Gone
        if (error := application.exception()) is not None:
            self._raise_for(error)
        if self._http.our_state is not h11.DONE:  # it stopped in the middle, and the other side must see that
            raise _Gone
        await body.drain()
        return self._http.our_state is h11.DONE and self._http.their_state is h11.DONE

    def _raise_for(self, error: BaseException) -> None:
        if isinstance(error, _Refused) and not self._has_begun:
            raise error
        if isinstance(error, _Refused | _Gone) or _tells_of_nothing_but_gone(error):
            raise _Gone from error
        _log.error("an application failed on a stream", exc_info=error)
        if self._has_begun:
            raise _Gone from error
        raise _Refused(500, "Something went wrong on the server.") from error

    async def _head(self) -> h11.Request | None:
        event = self._parsed()
        seconds = self._limits.idle_seconds
        while event is h11.NEED_DATA:
            if self._http.trailing_data[0]:
                seconds = self._limits.read_seconds
            piece = await self._incoming.piece(seconds)
            self._http.receive_data(piece)
            event = self._parsed()
        return event if isinstance(event, h11.Request) else None

    async def _next_event(self) -> Any:
        event = self._parsed()
        while event is h11.NEED_DATA:
            try:
                piece = await self._incoming.piece(self._limits.read_seconds)
            except TimeoutError:
                raise _Refused(408, "The request did not come to an end in time.") from None
            if not piece:
                raise _Gone
            self._http.receive_data(piece)
            event = self._parsed()
        return event

    def _parsed(self) -> Any:
        try:
            return self._http.next_event()
        except h11.RemoteProtocolError as error:
            raise _Refused(error.error_status_hint, "This is not a request that HTTP/1.1 allows.") from None

    def _scope(self, request: h11.Request) -> dict[str, Any]:
        path, _, query = request.target.partition(b"?")
        return {
            "type": "http",
            "asgi": {"version": "3.0", "spec_version": "2.4"},
            "http_version": request.http_version.decode("ascii"),
            "method": request.method.decode("ascii"),
            "scheme": "http",
            "path": path.decode("latin-1"),  # no path of ours needs percent-decoding
            "raw_path": path,
            "query_string": query,
            "root_path": "",
            "headers": [(name, value) for name, value in request.headers],
            "client": None,
            "server": None,
            "state": dict(self._state),
        }

    def _sender(self, request: h11.Request) -> AsgiSend:
        has_body = request.method != b"HEAD"

        async def send(message: AsgiMessage) -> None:
            if message["type"] == "http.response.start":
                headers = [(name, value) for name, value in message["headers"] if name.lower() not in _PER_CONNECTION]
                self._has_begun = True
                await self._write(self._http.send(h11.Response(status_code=message["status"], headers=headers)))
                return
            data = b""
            if has_body and (content := message.get("body", b"")):
                data = self._http.send(h11.Data(data=content)) or b""
            if not message.get("more_body", False):
                data += self._http.send(h11.EndOfMessage()) or b""
            await self._write(data)

        return send

    async def _write(self, data: bytes | None) -> None:
        if not data:
            return
        try:
            async with asyncio.timeout(self._limits.write_seconds):
                await self._stream.write(data)
        except OSError as error:  # a time-out is one too
            raise _Gone from error

    async def _refuse(self, status: int, message: str) -> None:
        if self._http.our_state not in (h11.IDLE, h11.SEND_RESPONSE):
            return
        body = json.dumps({"error": {"type": "invalid_request_error", "message": message}}).encode()
        headers = [("content-type", "application/json"), ("content-length", str(len(body))), ("connection", "close")]
        response = h11.Response(status_code=status, headers=headers, reason=_REASONS.get(status, b""))
        with contextlib.suppress(_Gone, h11.LocalProtocolError):
            data = [self._http.send(event) for event in (response, h11.Data(data=body), h11.EndOfMessage())]
            await self._write(b"".join(part or b"" for part in data))


class _Body:
    """A request's body, as the application asks for it."""

    def __init__(
        self,
        next_event: Callable[[], Awaitable[Any]],
        http: h11.Connection,
        write: Callable[[bytes | None], Awaitable[None]],
        limits: HttpLimits,
    ) -> None:
        self._next_event = next_event
        self._http = http
        self._write = write
        self._limits = limits
        self._bytes = 0
        self._is_whole = False

    def check_announced(self, request: h11.Request) -> None:
        for name, value in request.headers:
            if name == b"content-length" and int(value) > self._limits.body_bytes:
                raise _Refused(413, f"A request has at most {self._limits.body_bytes} bytes.")

    async def receive(self) -> AsgiMessage:
        if self._is_whole:
            await asyncio.Event().wait()  # the end of the stream cancels the application
        if self._http.they_are_waiting_for_100_continue:
            await self._write(self._http.send(h11.InformationalResponse(status_code=100, headers=[])))
        event = await self._next_event()
        if isinstance(event, h11.Data):
            self._bytes += len(event.data)
            if self._bytes > self._limits.body_bytes:
                raise _Refused(413, f"A request has at most {self._limits.body_bytes} bytes.")
            return {"type": "http.request", "body": bytes(event.data), "more_body": True}
        self._is_whole = True
        return {"type": "http.request", "body": b"", "more_body": False}

    async def drain(self) -> None:
        """Read what the application did not, so that the next request can be found."""
        if self._http.they_are_waiting_for_100_continue:
            return  # it will not be sent, and h11 closes the connection
        while not self._is_whole and self._http.their_state is h11.SEND_BODY:
            await self.receive()


async def whole_body(receive: AsgiReceive) -> bytes:
    """The body of a request; `HttpLimits` bounds it."""
    pieces = []
    while True:
        message = await receive()
        pieces.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(pieces)
