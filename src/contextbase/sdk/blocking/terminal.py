# Generated from aio/terminal.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""A terminal in a sandbox or in a session's, over a web socket."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated, Final

from pydantic import Field, TypeAdapter, ValidationError
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from contextbase.errors import Unavailable
from contextbase.sdk.blocking.sockets import opened_socket
from contextbase.wire.sandbox import AttachedItem, EndedItem, OutcomeView

__all__ = ["Terminal", "open_terminal"]

_ENDED: Final = 1000  # what a socket is closed with if nothing is wrong
_LOST: Final = "The server stopped, or the connection to it was lost."
_TOLD: Final[TypeAdapter[AttachedItem | EndedItem]] = TypeAdapter(
    Annotated[AttachedItem | EndedItem, Field(discriminator="type")]
)


class Terminal:
    """What the user of a terminal types and sees."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.outcome: OutcomeView | None = None
        """How the command ended; None until then, and in a session's terminal."""
        self.refusal: str | None = None
        """Why it ended, if not by itself: its sandbox stopped, the caller may not use it any more, or the connection
        was lost."""

    def send(self, data: bytes) -> None:
        """Type something. After the end it does nothing."""
        try:
            self._socket.send(data)
        except ConnectionClosed:
            return

    def receive(self) -> bytes:
        """What is shown next; empty at the end. Raises `Unavailable` for an answer that makes no sense."""
        while True:
            try:
                message = self._socket.recv()
            except ConnectionClosed as closed:
                if closed.rcvd is None or closed.rcvd.code != _ENDED:
                    self.refusal = (closed.rcvd.reason if closed.rcvd else "") or _LOST
                return b""
            if isinstance(message, bytes):
                return message
            try:
                told = _TOLD.validate_json(message)
            except ValidationError as error:
                raise Unavailable("The terminal's message could not be read: it is malformed.") from error
            if isinstance(told, EndedItem):
                self.outcome = told.outcome
                return b""

    def resize(self, *, rows: int, columns: int) -> None:
        """Tell the command the terminal's new size. After the end it does nothing."""
        try:
            self._socket.send(json.dumps({"resize": {"rows": rows, "columns": columns}}))
        except ConnectionClosed:
            return


@contextmanager
def open_terminal(address: str, headers: dict[str, str]) -> Iterator[Terminal]:
    with opened_socket(address, headers) as socket:
        yield Terminal(socket)
