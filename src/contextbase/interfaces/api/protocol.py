"""HTTP as uvicorn speaks it, with an end to how long a request's headers may get, a way to break a connection, and
answers that leave in one piece."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

__all__ = ["ABORT", "LimitedHttp"]

ABORT: Final = "contextbase.abort"
"""The extension by which an application breaks a connection whose reader has stopped reading."""

_LONGEST: Final = 64 * 1024
_MOST_HELD: Final = 64 * 1024


class OneWrite(asyncio.Transport):
    """Holds what is written until the end of the loop's turn: the head and the body of an answer, which uvicorn writes
    one after the other, are one call to the system and wake the reader once."""

    def __init__(self, transport: asyncio.Transport) -> None:
        super().__init__()
        self._transport = transport
        self._loop = asyncio.get_running_loop()
        self._held: list[bytes] = []
        self._size = 0

    def write(self, data: Any) -> None:
        if not self._held:
            self._loop.call_soon(self._release)
        self._held.append(data)
        self._size += len(data)
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
    """Counts what arrives without ending the headers or adding to the body. The parser keeps that in memory, however
    much it is and whoever sends it, with or without a token."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self._kept = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]  # as uvicorn has it
        super().connection_made(OneWrite(transport))

    def handle_websocket_upgrade(self) -> None:
        if isinstance(self.transport, OneWrite):
            self.transport = self.transport.unwrapped()
        super().handle_websocket_upgrade()

    def data_received(self, data: bytes) -> None:
        self._kept += len(data)
        super().data_received(data)
        if self._kept > _LONGEST and not self.transport.is_closing():
            self.send_400_response(f"The headers are over {_LONGEST} bytes.")

    def on_message_begin(self) -> None:
        self._kept = 0
        super().on_message_begin()
        self.scope["extensions"] = {ABORT: self.transport.abort}  # type: ignore[dict-item]  # an extension of our own

    def on_headers_complete(self) -> None:
        self._kept = 0
        super().on_headers_complete()

    def on_body(self, body: bytes) -> None:
        self._kept = 0
        super().on_body(body)
