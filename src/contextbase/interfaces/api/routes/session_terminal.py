"""A person's terminal in a session's sandbox, over a web socket like that of sandboxes. It outlasts the socket."""

from functools import partial
from uuid import UUID

from fastapi import APIRouter, WebSocket

from contextbase.errors import ContextbaseError
from contextbase.interfaces.api.authentication import authenticate
from contextbase.interfaces.api.execution_socket import (
    CommandInput,
    ScreenSize,
    close_refused,
    end_when_refused,
    first_of,
    listen,
    refuse_or_bridge,
)
from contextbase.sessions.model import SessionId
from contextbase.sessions.session_shell import SessionShell
from contextbase.sessions.terminals import SessionTerminals
from contextbase.wire.sandbox import AttachedItem

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/sessions")


@router.websocket("/{session}/terminal")
async def session_terminal(websocket: WebSocket, session: UUID, size: ScreenSize) -> None:
    """Your shell in the session's sandbox, while that runs. The first message is text, {"type": "attached"}: as many
    bytes as it says were shown before. Hanging up leaves the shell as it is; it ends with `exit`, with the sandbox, and
    half an hour after the last look at it."""
    terminals: SessionTerminals = websocket.app.state.services.terminals
    session_id = SessionId(session)
    try:
        caller = await authenticate(websocket)
        shell = await terminals.shell(caller, session_id, size)
    except ContextbaseError as error:
        await refuse_or_bridge(websocket, error)
        return
    await websocket.accept()
    typed = CommandInput()
    await first_of(
        _show(websocket, shell),
        listen(websocket, shell, typed),
        end_when_refused(websocket, partial(terminals.check, session_id=session_id)),
        beside=typed.give(shell),
    )


async def _show(websocket: WebSocket, shell: SessionShell) -> None:
    reader = shell.reader()
    try:
        await websocket.send_text(AttachedItem(replayed=reader.replayed).model_dump_json())
        async for piece in shell.output(reader):
            await websocket.send_bytes(piece)
    finally:
        shell.leave(reader)
    if shell.ended:
        await close_refused(websocket, shell.ended)
    else:
        await websocket.close()
