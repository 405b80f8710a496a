"""A command on another machine: two web sockets, and everything that comes on one goes out on the other."""

import asyncio
from contextlib import suppress
from typing import Any, Final

from starlette.responses import Response
from starlette.websockets import WebSocket
from websockets.asyncio.client import ClientConnection, connect
from websockets.exceptions import ConnectionClosed, InvalidStatus, WebSocketException

from contextbase.errors import ContextbaseError, HeldElsewhere
from contextbase.interfaces.api.forwarding.request_target import sent_headers, target_of
from contextbase.interfaces.api.forwarding.sent_on import Forwarder
from contextbase.interfaces.api.problems import error_response
from contextbase.machines.service import lost

__all__ = ["bridge_socket"]

_OPEN_SECONDS: Final = 10.0
_SILENT_SECONDS: Final = 20.0  # then it is asked whether it is there, and has as long to answer
_LARGEST_MESSAGE: Final = 16 << 20
_LOST: Final = 1011


async def bridge_socket(websocket: WebSocket, forwarder: Forwarder, error: HeldElsewhere) -> None:
    """Until either side hangs up. What goes wrong before it begins is answered as for any request."""
    try:
        upstream = await _opened(websocket, forwarder, str(error.details["machine"]))
    except InvalidStatus as refusal:
        answer = refusal.response
        kind = answer.headers.get("content-type", "")
        denial = Response(answer.body or b"", answer.status_code, media_type=kind)
        await websocket.send_denial_response(denial)
        return
    except ContextbaseError as problem:
        await websocket.send_denial_response(error_response(problem))
        return
    async with upstream:
        await websocket.accept()
        await _talk(websocket, upstream)


async def _opened(websocket: WebSocket, forwarder: Forwarder, name: str) -> ClientConnection:
    machine, address = await forwarder.machines.reachable(name)
    scope = websocket.scope
    headers = sent_headers(scope, forwarder.signed(scope, machine, b""))
    try:
        return await connect(
            f"ws{address.removeprefix('http')}{target_of(scope)}",
            additional_headers=[(key.decode("latin-1"), value.decode("latin-1")) for key, value in headers],
            proxy=None,
            compression=None,
            open_timeout=_OPEN_SECONDS,
            ping_interval=_SILENT_SECONDS,
            ping_timeout=_SILENT_SECONDS,
            max_size=_LARGEST_MESSAGE,
        )
    except InvalidStatus:
        raise
    except (OSError, TimeoutError, WebSocketException) as error:
        raise lost(machine) from error


async def _talk(websocket: WebSocket, upstream: ClientConnection) -> None:
    showing = asyncio.create_task(_show(websocket, upstream))
    typing = asyncio.create_task(_type(websocket, upstream))
    try:
        await asyncio.wait({showing, typing}, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in (showing, typing):
            task.cancel()
        await asyncio.gather(showing, typing, return_exceptions=True)


async def _show(websocket: WebSocket, upstream: ClientConnection) -> None:
    """What the machine sends, then its close. A machine that vanished sends none."""
    with suppress(ConnectionClosed):
        while True:
            message = await upstream.recv()
            if isinstance(message, bytes):
                await websocket.send_bytes(message)
            else:
                await websocket.send_text(message)
    code, reason = upstream.close_code, upstream.close_reason
    if code is None or code == 1006:
        code, reason = _LOST, "machine_lost: the machine that holds the sandbox does not answer."
    await websocket.close(code, reason or "")


async def _type(websocket: WebSocket, upstream: ClientConnection) -> None:
    while True:
        message: dict[str, Any] = dict(await websocket.receive())
        if message["type"] == "websocket.disconnect":
            return
        data = message.get("bytes")
        try:
            await upstream.send(message.get("text") or "" if data is None else data)
        except ConnectionClosed:
            await asyncio.Event().wait()  # the other task tells the client
