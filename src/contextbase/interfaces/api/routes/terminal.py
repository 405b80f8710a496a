"""A terminal in a sandbox, over a web socket: binary messages are what is typed and shown, text ones are JSON."""

import asyncio
from contextlib import suppress
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Query, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from contextbase.commands.shell import continued
from contextbase.errors import Conflict, ContextbaseError, HeldElsewhere
from contextbase.interfaces.api.authentication import FORWARDED_CALLER, agents_of, authenticate
from contextbase.interfaces.api.forwarding.sent_on import Forwarder
from contextbase.interfaces.api.forwarding.terminal_bridge import bridge_terminal
from contextbase.interfaces.api.problems import error_response
from contextbase.interfaces.api.run_views import outcome_view
from contextbase.sandbox.model import Command, SandboxId, TerminalSize
from contextbase.sandbox.ports import Execution
from contextbase.wire.sandbox import EndedItem, TerminalControl

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/sandboxes")

_UNREADABLE, _TOO_MUCH = 1007, 1009
_MOST_TYPED: Final = 16 << 20


@router.websocket("/{sandbox_id}/terminal")
async def terminal(
    websocket: WebSocket,
    sandbox_id: UUID,
    rows: Annotated[int, Query(ge=1, le=9999)] = 24,
    columns: Annotated[int, Query(ge=1, le=9999)] = 80,
    command: Annotated[str | None, Query(max_length=8192)] = None,
) -> None:
    """A shell, or a command for one. To change the size: {"resize": {"rows": 40, "columns": 120}}. When it has ended,
    the item `ended` comes as text, and the socket closes. Whoever hangs up ends it."""
    opened = SandboxId(int=sandbox_id.int)
    try:
        caller = await authenticate(websocket)
        execution = await agents_of(websocket).sandboxes.exec(
            caller,
            opened,
            Command(
                argv=continued(command or "exec $0 -i", opened, is_placed=False),
                has_input=True,
                terminal=TerminalSize(rows=rows, columns=columns),
                asked=command or "a terminal",
            ),
        )
    except HeldElsewhere as error:
        forwarder: Forwarder | None = websocket.app.state.forwarder
        if forwarder is None or FORWARDED_CALLER in websocket.scope:
            await websocket.send_denial_response(error_response(error))
        else:
            await bridge_terminal(websocket, forwarder, error)
        return
    except ContextbaseError as error:
        await websocket.send_denial_response(error_response(error))
        return
    try:
        await websocket.accept()
        await _talk(websocket, execution)
    finally:
        await execution.kill()


async def _talk(websocket: WebSocket, execution: Execution) -> None:
    """Until the command ends or nobody is there: whatever is left of it then is the caller's to end."""
    typed = _Typed()
    showing = asyncio.create_task(_show(websocket, execution))
    listening = asyncio.create_task(_listen(websocket, execution, typed))
    typing = asyncio.create_task(typed.give(execution))
    await asyncio.wait({showing, listening}, return_when=asyncio.FIRST_COMPLETED)
    for task in (showing, listening, typing):
        task.cancel()
    for result in await asyncio.gather(showing, listening, typing, return_exceptions=True):
        if isinstance(result, Exception) and not isinstance(result, WebSocketDisconnect):
            raise result


async def _show(websocket: WebSocket, execution: Execution) -> None:
    async for piece in execution.output():
        await websocket.send_bytes(piece.data)
    ended = EndedItem(outcome=outcome_view(await execution.wait()))
    await websocket.send_text(ended.model_dump_json())
    await websocket.close()


class _Typed:
    """What was typed and not read yet. It is kept here, so that a command that does not read does not keep us from
    hearing that somebody hung up."""

    def __init__(self) -> None:
        self._waiting = bytearray()
        self._more = asyncio.Event()

    def add(self, data: bytes) -> bool:
        """False: it is too much."""
        self._waiting += data
        self._more.set()
        return len(self._waiting) <= _MOST_TYPED

    async def give(self, execution: Execution) -> None:
        with suppress(Conflict):  # it reads no more
            while await self._more.wait():
                self._more.clear()
                data, self._waiting = bytes(self._waiting), bytearray()
                await execution.write(data)


async def _listen(websocket: WebSocket, execution: Execution, typed: _Typed) -> None:
    """Until they hang up, or say what cannot be understood."""
    while True:
        message: dict[str, Any] = dict(await websocket.receive())
        if message["type"] == "websocket.disconnect":
            return
        if (data := message.get("bytes")) is not None:
            if not typed.add(data):
                await websocket.close(_TOO_MUCH, "The command does not read what is typed.")
                return
            continue
        try:
            control = TerminalControl.model_validate_json(message.get("text") or "")
        except ValidationError:
            await websocket.close(_UNREADABLE, 'A text message is JSON such as {"resize": {"rows": 1, "columns": 1}}.')
            return
        await execution.resize(TerminalSize(rows=control.resize.rows, columns=control.resize.columns))
