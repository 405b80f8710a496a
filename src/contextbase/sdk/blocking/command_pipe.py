# Generated from aio/command_pipe.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""A command in a sandbox whose input is sent, and whose output is read, while it runs; over a web socket."""

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from pydantic import TypeAdapter, ValidationError
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import ClientConnection

from contextbase.errors import Unavailable
from contextbase.sdk.blocking.sockets import opened_socket
from contextbase.sdk.blocking.waiting import Lock
from contextbase.sdk.http import error_of
from contextbase.wire.sandbox import (
    CommandBody,
    EndedItem,
    FailedItem,
    OutcomeView,
    PipeControl,
    PipedOutput,
    PipeItem,
    TakenItem,
)

__all__ = ["CommandPipe", "open_pipe"]

_ITEM: Final[TypeAdapter[PipeItem]] = TypeAdapter(PipeItem)
_PIECE: Final = 64 << 10
_MOST_WAITING: Final = 1 << 20  # bytes that were sent and that the command has not read


class CommandPipe:
    """One may send while another receives. Whoever sends much must receive too: a command that nobody listens to stops
    in the end."""

    def __init__(self, socket: ClientConnection) -> None:
        self._socket = socket
        self._turn = Lock()
        self._waiting = 0
        self._outputs: deque[PipedOutput] = deque()
        self._is_over = False
        self.outcome: OutcomeView | None = None
        """How the command ended; None until then."""

    def send(self, data: bytes) -> None:
        """To the command's standard input; waits while it does not read. After its end it does nothing."""
        for start in range(0, len(data), _PIECE):
            while self._waiting >= _MOST_WAITING and not self._is_over:
                with self._turn:
                    if self._waiting >= _MOST_WAITING and not self._is_over:
                        self._take()
            piece = data[start : start + _PIECE]
            self._waiting += len(piece)
            if not self._sent(piece):
                return

    def end_input(self) -> None:
        """The command reads the end of its input."""
        self._sent(PipeControl(end_input=True).model_dump_json())

    def receive(self) -> PipedOutput | None:
        """What the command wrote next; None at its end. Raises what kept it from running, and `Unavailable` if the
        connection is lost before the end."""
        while not self._outputs and not self._is_over:
            with self._turn:
                if not self._outputs and not self._is_over:
                    self._take()
        return self._outputs.popleft() if self._outputs else None

    def _sent(self, message: bytes | str) -> bool:
        try:
            self._socket.send(message)
        except ConnectionClosed:
            return False
        return True

    def _take(self) -> None:
        """The next message of the server."""
        try:
            message = self._socket.recv()
            if isinstance(message, bytes):
                self._outputs.append(PipedOutput.decoded(message))
                return
            item = _ITEM.validate_json(message)
        except ConnectionClosed as error:
            self._is_over = True
            raise Unavailable("The connection was lost before the command ended.") from error
        except (ValidationError, ValueError) as error:
            self._is_over = True
            raise Unavailable("The server's answer is malformed.") from error
        match item:
            case TakenItem():
                self._waiting -= item.bytes
            case EndedItem():
                self._is_over, self.outcome = True, item.outcome
            case FailedItem():
                self._is_over = True
                raise error_of(item.problem)


@contextmanager
def open_pipe(address: str, headers: dict[str, str], body: CommandBody) -> Iterator[CommandPipe]:
    with opened_socket(address, headers) as socket:
        socket.send(body.model_dump_json(exclude_defaults=True))
        yield CommandPipe(socket)
