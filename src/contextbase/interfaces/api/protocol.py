"""HTTP as uvicorn speaks it, with limits to how long headers may get and how slow a client may be, and answers that
leave in one piece."""

import asyncio
import logging
import socket
import struct
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from contextbase.interfaces.api.connections import TOO_MANY, Connections, Pace, bare_answer
from contextbase.interfaces.api.zero_copy import ZERO_COPY, send_part

__all__ = ["LimitedHttp"]

_log = logging.getLogger(__name__)

_LONGEST: Final = 64 * 1024
_MOST_HELD: Final = 64 * 1024
_PAUSE: Final = 0.001
_DROP_WHAT_IS_UNSENT: Final = struct.pack("ii", 1, 0)  # SO_LINGER: on, for no time
_TOO_SLOW: Final = bare_answer(408, "request_timeout", "The request came too slowly, so the server stopped waiting.")


class OneWrite(asyncio.Transport):
    """Holds what is written until the end of the loop's turn: the head and the body of an answer, which uvicorn writes
    one after the other, are one call to the system and wake the reader once."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._size = 0
        self._written = 0
        self._file_left = 0

    def write(self, data: Any) -> None:
        if not self._held:
            self._loop.call_soon(self._release)
        self._held.append(data)
        self._size += len(data)
        self._written += len(data)
        if self._size > _MOST_HELD:  # its own limits must see a long answer come, or nothing slows its writer down
            self._release()

    def close(self) -> None:
        self._release()
        self._transport.close()

    def abort(self) -> None:
        self._held.clear()
        self._transport.abort()

    def is_closing(self) -> bool:
        return self._transport.is_closing()

    def get_write_buffer_size(self) -> int:
        """What the other side has not taken yet."""
        return self._size + self._file_left + self._transport.get_write_buffer_size()

    @property
    def taken(self) -> int:
        """The bytes that the other side has taken so far."""
        return self._written - self.get_write_buffer_size()

    async def send_file(self, file: int, start: int, count: int) -> None:
        """Send a part of an open file after all that was written. Raises `OSError` if that cannot be done."""
        self._release()
        # The head of an answer: it leaves at once, if the client reads at all.
        while self._transport.get_write_buffer_size() and not self.is_closing():  # noqa: ASYNC110 - it tells nobody
            await asyncio.sleep(_PAUSE)
        self._written += count
        self._file_left = count
        try:
            connection = self._transport.get_extra_info("socket").fileno()
            await send_part(connection, file, start, count, sent=self._sent, is_closed=self.is_closing)
        finally:
            self._file_left = 0

    def _sent(self, count: int) -> None:
        self._file_left -= count

    def unwrapped(self) -> asyncio.Transport:
        """The transport itself, for who takes the connection over."""
        self._release()
        return self._transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return self._transport.get_extra_info(name, default)

    def pause_reading(self) -> None:
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        self._transport.resume_reading()

    def _release(self) -> None:
        held, self._held, self._size = self._held, [], 0
        if held and not self._transport.is_closing():  # the other side may have gone away
            self._transport.write(b"".join(held))


class LimitedHttp(HttpToolsProtocol):
    """Counts what arrives without ending the headers or adding to the body: the parser keeps that in memory, however
    much it is, with or without a token. Closes the connection of a client that is too slow, whichever way."""

    def __init__(self, *args: Any, connections: Connections, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._connections = connections
        self._bare_app, self.app = self.app, self._answer
        self._kept = 0
        self._headers_since: float | None = None  # None: they are complete, or nothing came after the last request
        self._has_begun = False
        self._is_in_body = False
        self._body_received = 0
        self._incoming = Pace()
        self._outgoing = Pace()
        self._stream: OneWrite

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        self._stream = OneWrite(transport)
        self._headers_since = self.loop.time()
        super().connection_made(self._stream)
        self._connections.add(self)

    def _answer(self, scope: Any, receive: Any, send: Any) -> Awaitable[None]:
        """As the application answers; where somebody reads, with the extension by which it can send files."""
        cycle: RequestResponseCycle = self.cycle
        # Else a later request came before this one was begun.
        sends_files = scope["method"] == "GET" and cycle.scope is scope
        return self._with_files(cycle, scope, receive, send) if sends_files else self._bare_app(scope, receive, send)

    async def _with_files(self, cycle: RequestResponseCycle, scope: Any, receive: Any, send: Any) -> None:

        async def send_either(message: Any) -> None:
            if message["type"] != ZERO_COPY:
                await send(message)
            elif not cycle.disconnected:
                await self._stream.send_file(message["file"], message["offset"], message["count"])
                cycle.expected_content_length -= message["count"]

        scope["extensions"] = {**scope.get("extensions", {}), ZERO_COPY: {}}
        await self._bare_app(scope, receive, send_either)

    def connection_lost(self, exc: Exception | None) -> None:
        self._connections.remove(self)
        super().connection_lost(exc)

    def handle_websocket_upgrade(self) -> None:
        self._connections.remove(self)
        self.transport = self._stream.unwrapped()
        super().handle_websocket_upgrade()

    def check(self, now: float) -> None:
        """Close the connection if its client sends or reads too slowly."""
        limits = self._connections.limits
        if self._headers_since is not None and now - self._headers_since > limits.timeout_seconds:
            self._hang_up("slow_headers" if self._has_begun else "silent")
            return
        if not self._awaits_body():
            self._incoming.rest()
        elif self._incoming.is_too_slow(now, self._body_received, limits):
            self._hang_up("slow_body")
            return
        if not self._stream.get_write_buffer_size():
            self._outgoing.rest()
        elif self._outgoing.is_too_slow(now, self._stream.taken, limits):
            self._break_off("slow_reader")

    def displace(self) -> None:
        self._stream.write(TOO_MANY)
        self._stream.close()

    def _awaits_body(self) -> bool:
        """Whether it is the client's turn to send more of a body: not while the application is slower than that."""
        if not self._is_in_body or self.flow.read_paused:
            return False
        return not self.cycle.waiting_for_100_continue

    def _is_answering(self) -> bool:
        cycle: RequestResponseCycle | None = self.cycle  # None before the first request
        return cycle is not None and cycle.response_started and not cycle.response_complete

    def _hang_up(self, reason: str) -> None:
        """With an answer, unless one has begun already."""
        if self._stream.is_closing():
            self._break_off(reason)
            return
        self._note(reason)
        if self._has_begun and not self._is_answering():
            self._stream.write(_TOO_SLOW)
        self._stream.close()

    def _break_off(self, reason: str) -> None:
        """The client does not read, so there is no use in waiting until it has read the rest."""
        self._note(reason)
        connection = self._stream.get_extra_info("socket")
        if connection is not None:
            with suppress(OSError):
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _DROP_WHAT_IS_UNSENT)
        self._stream.abort()

    def _note(self, reason: str) -> None:
        self._connections.count_closed(reason)
        address = self.client[0] if self.client else ""
        _log.info("a connection was closed", extra={"reason": reason, "client": address})

    def data_received(self, data: bytes) -> None:
        if self._headers_since is None and not self._is_in_body:
            self._headers_since = self.loop.time()
        self._kept += len(data)
        super().data_received(data)
        if self._kept > _LONGEST and not self.transport.is_closing():
            self.send_400_response(f"The headers are over {_LONGEST} bytes.")

    def on_message_begin(self) -> None:
        self._kept = 0
        self._has_begun = True
        if self._headers_since is None:  # after another request in the same bytes
            self._headers_since = self.loop.time()
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._kept = 0
        self._headers_since = None
        self._connections.has_sent_request(self)
        super().on_headers_complete()
        self._is_in_body = True

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        self._body_received += len(body)
        super().on_body(body)

    def on_message_complete(self) -> None:
        self._is_in_body = False
        super().on_message_complete()
