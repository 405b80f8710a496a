"""Sends a request on to the machine that has to answer it, and the answer back, as both come.

The caller is authenticated here, and has got as far as the service that found out where the answer is; the machine
decides again, with the caller that this server has signed."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import httpx
from pydantic import ValidationError
from starlette.requests import ClientDisconnect
from starlette.types import Message, Receive, Scope, Send

from contextbase.errors import ContextbaseError, HeldElsewhere, MachineLost
from contextbase.identity.model import Caller
from contextbase.interfaces.api.authentication import CALLER
from contextbase.interfaces.api.event_stream import EVENT_STREAM
from contextbase.interfaces.api.forwarding.received_body import RECEIVED, ReceivedBody
from contextbase.interfaces.api.forwarding.request_target import (
    LONGEST_SIGNED_BODY,
    answer_headers,
    sent_headers,
    target_of,
)
from contextbase.interfaces.api.problems import error_response, problem_of
from contextbase.machines.model import MachineRecord
from contextbase.machines.service import MachineService, lost
from contextbase.machines.signature import CallerSigner, SentRequest, body_hash
from contextbase.wire.problem import Problem
from contextbase.wire.sandbox import FailedItem

__all__ = ["Forwarder"]

_log = logging.getLogger(__name__)

_CONNECT_SECONDS: Final = 5.0
_WRITE_SECONDS: Final = 60.0
_CHECK_SECONDS: Final = 2.0  # how often a machine that takes long is looked for
_KEEP_SECONDS: Final = 10.0  # shorter than the machine keeps a silent connection
_MOST_TRIES: Final = 3
_EVENT_END: Final = b"\n\n"


class Forwarder:
    def __init__(self, *, machines: MachineService, signer: CallerSigner) -> None:
        self.machines = machines
        self._signer = signer
        self._client = httpx.AsyncClient(
            # An answer may take as long as a command runs: a machine that is lost is found out by looking for it.
            timeout=httpx.Timeout(None, connect=_CONNECT_SECONDS, write=_WRITE_SECONDS),
            limits=httpx.Limits(max_connections=None, max_keepalive_connections=100, keepalive_expiry=_KEEP_SECONDS),
            trust_env=False,
            follow_redirects=False,
        )

    async def close(self) -> None:
        await self._client.aclose()

    def signed(self, scope: Scope, machine: MachineRecord, body: bytes | None) -> str:
        caller: Caller = scope["state"][CALLER]
        return self._signer.signed(
            caller,
            SentRequest(
                machine=machine.name,
                process=machine.process,
                method=scope.get("method", "GET"),
                target=target_of(scope),
                body_hash=None if body is None else body_hash(body),
            ),
        )

    async def answer(self, scope: Scope, receive: Receive, send: Send, error: HeldElsewhere) -> None:
        """What the machine answers that the error names, or an error of ours: `MachineLost` if it does not."""
        try:
            for _ in range(_MOST_TRIES):
                moved = await self._try(scope, send, str(error.details["machine"]))
                if moved is None:
                    return
                error = moved
            raise error
        except ContextbaseError as problem:
            await error_response(problem)(scope, receive, send)

    async def _try(self, scope: Scope, send: Send, name: str) -> HeldElsewhere | None:
        """An error when the machine says that by now another one has it."""
        machine, address = await self.machines.reachable(name)
        received: ReceivedBody = scope[RECEIVED]
        body = await received.short(LONGEST_SIGNED_BODY)
        if body is not None:
            received.will_not_be_read()
        request = self._client.build_request(
            scope["method"],
            address,
            headers=httpx.Headers(sent_headers(scope, self.signed(scope, machine, body))),
            content=received.pieces() if body is None else body or None,
            extensions={"target": target_of(scope).encode("latin-1")},
        )
        relay = _Relay(self._client, request, send, machine, is_whole=body is not None)
        working = asyncio.create_task(relay.run())
        losing = asyncio.create_task(self._until_lost(machine))
        leaving = asyncio.create_task(received.hung_up())
        tasks = (working, losing, leaving)
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            if working.done():
                return working.result()
            if losing.done():
                losing.result()
                await _ended(working)
                await relay.end(lost(machine))
        finally:
            await _ended(*tasks)
        return None

    async def _until_lost(self, machine: MachineRecord) -> None:
        while True:
            await asyncio.sleep(_CHECK_SECONDS)
            with suppress(ContextbaseError):  # the database is away: the machine may well be there
                if not await self.machines.is_alive(machine):
                    return


class _Relay:
    """One answer, on its way to the client."""

    def __init__(
        self, client: httpx.AsyncClient, request: httpx.Request, send: Send, machine: MachineRecord, *, is_whole: bool
    ) -> None:
        self._client = client
        self._request = request
        self._send = send
        self._machine = machine
        self._is_whole = is_whole  # the request could be sent again
        self._has_begun = False
        self._is_event_stream = False
        self._last = b""

    async def run(self) -> HeldElsewhere | None:
        try:
            response = await self._client.send(self._request, stream=True)
            try:
                if self._is_whole and (moved := await _held_elsewhere(response)) is not None:
                    return moved
                await self._begin(response)
                async for piece in _pieces(response):
                    self._last = piece
                    await self._send(_body(piece, more=True))
                await self._send(_body(b"", more=False))
            finally:
                await response.aclose()
        except httpx.TransportError as error:
            _log.warning(
                "a request could not be sent on", extra={"machine": self._machine.name, "error": type(error).__name__}
            )
            await self.end(lost(self._machine))
        return None

    async def end(self, error: MachineLost) -> None:
        """Say it where that can still be said; else break the connection."""
        if not self._has_begun:
            raise error
        if not (self._is_event_stream and self._last.endswith(_EVENT_END)):
            raise ClientDisconnect from error
        item = FailedItem(problem=problem_of(error)).model_dump_json()
        await self._send(_body(f"data: {item}\n\n".encode(), more=False))

    async def _begin(self, response: httpx.Response) -> None:
        self._has_begun = True
        self._is_event_stream = response.headers.get("content-type", "").startswith(EVENT_STREAM)
        await self._send(
            {
                "type": "http.response.start",
                "status": response.status_code,
                "headers": answer_headers(response.headers.raw),
            }
        )


async def _held_elsewhere(response: httpx.Response) -> HeldElsewhere | None:
    if response.status_code != httpx.codes.MISDIRECTED_REQUEST:
        return None
    try:
        problem = Problem.model_validate_json(await response.aread())
    except ValidationError:
        return None
    if problem.code != HeldElsewhere.code or "machine" not in problem.details:
        return None
    return HeldElsewhere(problem.detail, **problem.details)


async def _pieces(response: httpx.Response) -> AsyncIterator[bytes]:
    """As they come, and as they are; or what `_held_elsewhere` has read."""
    if response.is_stream_consumed:
        yield response.content
        return
    async for piece in response.aiter_raw():
        yield piece


async def _ended(*tasks: "asyncio.Task[object]") -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _body(piece: bytes, *, more: bool) -> Message:
    return {"type": "http.response.body", "body": piece, "more_body": more}
