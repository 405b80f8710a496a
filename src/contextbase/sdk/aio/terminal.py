"""A terminal in a sandbox, over a web socket."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from pydantic import ValidationError
from websockets.asyncio.client import ClientConnection
from websockets.exceptions import ConnectionClosed

from contextbase.errors import Unavailable
from contextbase.sdk.aio.sockets import opened_socket
from contextbase.wire.sandbox import EndedItem, OutcomeView

__all__ = ["AsyncTerminal", "open_terminal"]


class AsyncTerminal:
    """What the user of a terminal types and sees."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.outcome: OutcomeView | None = None
        """How the command ended; None until then."""

    async def send(self, data: bytes) -> None:
        """Type something. After the end it does nothing."""
        try:
            await self._socket.send(data)
        except ConnectionClosed:
            return

    async def receive(self) -> bytes:
        """What is shown next; empty at the end. Raises `Unavailable` for an answer that makes no sense."""
        try:
            message = await self._socket.recv()
        except ConnectionClosed:
            return b""
        if isinstance(message, bytes):
            return message
        try:
            self.outcome = EndedItem.model_validate_json(message).outcome
        except ValidationError as error:
            raise Unavailable("The terminal's end could not be read: the server's answer is malformed.") from error
        return b""

    async def resize(self, *, rows: int, columns: int) -> None:
        """Tell the command the terminal's new size. After the end it does nothing."""
        try:
            await self._socket.send(json.dumps({"resize": {"rows": rows, "columns": columns}}))
        except ConnectionClosed:
            return


@asynccontextmanager
async def open_terminal(address: str, headers: dict[str, str]) -> AsyncIterator[AsyncTerminal]:
    async with opened_socket(address, headers) as socket:
        yield AsyncTerminal(socket)
