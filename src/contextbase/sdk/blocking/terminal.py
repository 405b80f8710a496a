# Generated from aio/terminal.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""A terminal in a sandbox, over a web socket."""

import json
from collections.abc import Iterator
from contextlib import contextmanager

from pydantic import ValidationError
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from contextbase.errors import Unavailable
from contextbase.sdk.blocking.sockets import opened_socket
from contextbase.wire.sandbox import EndedItem, OutcomeView

__all__ = ["Terminal", "open_terminal"]


class Terminal:
    """What the user of a terminal types and sees."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self.outcome: OutcomeView | None = None
        """How the command ended; None until then."""

    def send(self, data: bytes) -> None:
        """Type something. After the end it does nothing."""
        try:
            self._socket.send(data)
        except ConnectionClosed:
            return

    def receive(self) -> bytes:
        """What is shown next; empty at the end. Raises `Unavailable` for an answer that makes no sense."""
        try:
            message = self._socket.recv()
        except ConnectionClosed:
            return b""
        if isinstance(message, bytes):
            return message
        try:
            self.outcome = EndedItem.model_validate_json(message).outcome
        except ValidationError as error:
            raise Unavailable("The terminal's end could not be read: the server's answer is malformed.") from error
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
