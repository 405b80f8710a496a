"""A command that runs, over a web socket: what its terminal and its pipe have in common."""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from typing import Annotated, Any, Final, Protocol

from fastapi import Depends, Query, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from contextbase.errors import Conflict, ContextbaseError, HeldElsewhere
from contextbase.identity.model import Caller
from contextbase.interfaces.api.authentication import FORWARDED_CALLER
from contextbase.interfaces.api.forwarding.sent_on import Forwarder
from contextbase.interfaces.api.forwarding.socket_bridge import bridge_socket
from contextbase.interfaces.api.problems import error_response
from contextbase.interfaces.api.watched_caller import until_refused
from contextbase.sandbox.model import TerminalSize
from contextbase.wire.sandbox import TerminalControl

__all__ = [
    "TOO_MUCH",
    "UNREADABLE",
    "CommandInput",
    "ScreenSize",
    "close_refused",
    "end_when_refused",
    "first_of",
    "listen",
    "refuse_or_bridge",
]

UNREADABLE, REFUSED, TOO_MUCH = 1007, 1008, 1009  # why a socket is closed
_LONGEST_REASON: Final = 120
_MOST_WAITING: Final = 16 << 20


def _screen_size(
    rows: Annotated[int, Query(ge=1, le=9999)] = 24, columns: Annotated[int, Query(ge=1, le=9999)] = 80
) -> TerminalSize:
    return TerminalSize(rows=rows, columns=columns)


ScreenSize = Annotated[TerminalSize, Depends(_screen_size)]


async def refuse_or_bridge(websocket: WebSocket, error: ContextbaseError) -> None:
    """Before the socket is accepted. What is on another machine is reached through its server."""
    forwarder: Forwarder | None = websocket.app.state.forwarder
    if isinstance(error, HeldElsewhere) and forwarder is not None and FORWARDED_CALLER not in websocket.scope:
        await bridge_socket(websocket, forwarder, error)
    else:
        await websocket.send_denial_response(error_response(error))


async def end_when_refused(websocket: WebSocket, check: Callable[[Caller], Awaitable[object]]) -> None:
    """Hangs up once the caller may not use the sandbox any more."""
    error = await until_refused(websocket, check)
    await close_refused(websocket, error.message)


async def close_refused(websocket: WebSocket, why: str) -> None:
    await websocket.close(REFUSED, why.encode()[:_LONGEST_REASON].decode(errors="ignore"))


async def first_of(*ends: Coroutine[None, None, None], beside: Coroutine[None, None, None]) -> None:
    """Until one of the `ends` is done: whatever is left then is the caller's to end."""
    deciding = {asyncio.create_task(each) for each in ends}
    tasks = [*deciding, asyncio.create_task(beside)]
    try:
        await asyncio.wait(deciding, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for result in results:
        if isinstance(result, Exception) and not isinstance(result, WebSocketDisconnect):
            raise result


class TakesInput(Protocol):
    """What is typed goes here: see `Execution`."""

    async def write(self, data: bytes) -> None: ...

    async def end_input(self) -> None: ...


class ResizedInput(TakesInput, Protocol):
    async def resize(self, size: TerminalSize) -> None: ...


async def listen(websocket: WebSocket, terminal: ResizedInput, typed: "CommandInput") -> None:
    """Until they hang up, or say what cannot be understood."""
    while True:
        message: dict[str, Any] = dict(await websocket.receive())
        if message["type"] == "websocket.disconnect":
            return
        if (data := message.get("bytes")) is not None:
            if not typed.add(data):
                await websocket.close(TOO_MUCH, "The command does not read what is typed.")
                return
            continue
        try:
            control = TerminalControl.model_validate_json(message.get("text") or "")
        except ValidationError:
            await websocket.close(UNREADABLE, 'A text message is JSON such as {"resize": {"rows": 1, "columns": 1}}.')
            return
        await terminal.resize(TerminalSize(rows=control.resize.rows, columns=control.resize.columns))


class CommandInput:
    """What was sent to a command and not read yet. It is kept here, so that a command that does not read does not keep
    us from hearing that somebody hung up."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._more = asyncio.Event()
        self._is_ended = False

    def add(self, data: bytes) -> bool:
        """False: it is too much."""
        self._waiting += data
        self._more.set()
        return len(self._waiting) <= _MOST_WAITING

    def end(self) -> None:
        """Nothing comes any more."""
        self._is_ended = True
        self._more.set()

    async def give(self, execution: TakesInput, taken: Callable[[int], Awaitable[None]] | None = None) -> None:
        """To the command, to the end. `taken` hears how many bytes are not kept here any more: the command has them, or
        does not want them."""
        reads = True
        while await self._more.wait():
            self._more.clear()
            data, self._waiting = bytes(self._waiting), bytearray()
            if data and reads:
                try:
                    await execution.write(data)
                except Conflict:
                    reads = False
            if data and taken is not None:
                await taken(len(data))
            if self._is_ended and not self._waiting:
                await execution.end_input()
                return
