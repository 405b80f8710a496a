"""A command in a sandbox with its input and output as they come, over a web socket; see docs/reference.md."""

import asyncio
from functools import partial
from typing import Any, Final
from uuid import UUID

from fastapi import APIRouter, WebSocket, WebSocketDisconnect
from pydantic import ValidationError

from contextbase.errors import ContextbaseError
from contextbase.interfaces.api.authentication import agents_of, authenticate
from contextbase.interfaces.api.execution_socket import (
    TOO_MUCH,
    UNREADABLE,
    CommandInput,
    end_when_refused,
    first_of,
    refuse_or_bridge,
)
from contextbase.interfaces.api.problems import problem_of
from contextbase.interfaces.api.run_views import outcome_view
from contextbase.interfaces.api.sandbox_commands import sandbox_command
from contextbase.sandbox.model import SandboxId
from contextbase.sandbox.ports import Execution
from contextbase.wire.sandbox import CommandBody, EndedItem, FailedItem, PipeControl, PipedOutput, TakenItem

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/sandboxes")

_COMMAND_SECONDS: Final = 60.0  # until the caller has said what to run


@router.websocket("/{sandbox_id}/exec")
async def pipe(websocket: WebSocket, sandbox_id: UUID) -> None:
    """The first message is the command, as JSON. Then binary messages are its standard input, which {"end_input": true}
    ends; answers are its output, each behind a byte that says which, and text: `taken` for input that may be followed
    by more, `ended` or `failed` at the end. Whoever hangs up ends the command."""
    opened = SandboxId(int=sandbox_id.int)
    try:
        caller = await authenticate(websocket)
        sandboxes = agents_of(websocket).sandboxes
        await sandboxes.status(caller, opened)
    except ContextbaseError as error:
        await refuse_or_bridge(websocket, error)
        return
    await websocket.accept()
    try:
        body = await _asked(websocket)
        if body is None:
            await websocket.close(UNREADABLE, "The first message is a command as JSON, without stdin and log.")
            return
        execution = await sandboxes.exec(caller, opened, sandbox_command(body, opened, has_input=True))
    except ContextbaseError as error:
        await websocket.send_text(FailedItem(problem=problem_of(error)).model_dump_json())
        await websocket.close()
        return
    except WebSocketDisconnect:
        return
    try:
        given = CommandInput()

        async def taken(count: int) -> None:
            await websocket.send_text(TakenItem(bytes=count).model_dump_json())

        await first_of(
            _show(websocket, execution),
            _listen(websocket, given),
            end_when_refused(websocket, partial(sandboxes.check, sandbox_id=opened)),
            beside=given.give(execution, taken),
        )
    finally:
        await execution.kill()


async def _asked(websocket: WebSocket) -> CommandBody | None:
    """None for what is not a command for a pipe."""
    try:
        async with asyncio.timeout(_COMMAND_SECONDS):
            body = CommandBody.model_validate_json(await websocket.receive_text())
    except (ValidationError, KeyError, TimeoutError):
        return None
    return None if body.stdin is not None or body.log else body


async def _show(websocket: WebSocket, execution: Execution) -> None:
    async for piece in execution.output():
        await websocket.send_bytes(PipedOutput(stream=piece.stream, data=piece.data).encoded())
    await websocket.send_text(EndedItem(outcome=outcome_view(await execution.wait())).model_dump_json())
    await websocket.close()


async def _listen(websocket: WebSocket, given: CommandInput) -> None:
    """Until they hang up, or say what cannot be understood."""
    while True:
        message: dict[str, Any] = dict(await websocket.receive())
        if message["type"] == "websocket.disconnect":
            return
        if (data := message.get("bytes")) is not None:
            if not given.add(data):
                await websocket.close(TOO_MUCH, "Wait until what was sent is taken before you send more.")
                return
            continue
        try:
            PipeControl.model_validate_json(message.get("text") or "")
        except ValidationError:
            await websocket.close(UNREADABLE, 'A text message is {"end_input": true}.')
            return
        given.end()
