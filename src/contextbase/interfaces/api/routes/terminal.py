"""A terminal in a sandbox, over a web socket: binary messages are what is typed and shown, text ones are JSON."""

from functools import partial
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query, WebSocket

from contextbase.commands.shell import continued
from contextbase.errors import ContextbaseError
from contextbase.interfaces.api.authentication import agents_of, authenticate
from contextbase.interfaces.api.execution_socket import (
    CommandInput,
    ScreenSize,
    end_when_refused,
    first_of,
    listen,
    refuse_or_bridge,
)
from contextbase.interfaces.api.run_views import outcome_view
from contextbase.sandbox.model import Command, SandboxId
from contextbase.sandbox.ports import Execution
from contextbase.wire.sandbox import EndedItem

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/sandboxes")


@router.websocket("/{sandbox_id}/terminal")
async def terminal(
    websocket: WebSocket,
    sandbox_id: UUID,
    size: ScreenSize,
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
                terminal=size,
                asked=command or "a terminal",
            ),
        )
    except ContextbaseError as error:
        await refuse_or_bridge(websocket, error)
        return
    try:
        await websocket.accept()
        typed = CommandInput()
        await first_of(
            _show(websocket, execution),
            listen(websocket, execution, typed),
            end_when_refused(websocket, partial(agents_of(websocket).sandboxes.check, sandbox_id=opened)),
            beside=typed.give(execution),
        )
    finally:
        await execution.kill()


async def _show(websocket: WebSocket, execution: Execution) -> None:
    async for piece in execution.output():
        await websocket.send_bytes(piece.data)
    ended = EndedItem(outcome=outcome_view(await execution.wait()))
    await websocket.send_text(ended.model_dump_json())
    await websocket.close()
