"""The gateway: an ASGI application that agent programs take for the model service; see docs/guides/models.md.

Bodies are forwarded byte for byte, answers piece by piece. Whose request it is comes from the stream's state."""

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from contextbase.errors import ContextbaseError, ModelUpstreamUnavailable
from contextbase.ids import new_uuid
from contextbase.models.dialects import GatewayError, GatewayProblem, error_body
from contextbase.models.headers import passed_in, passed_out
from contextbase.models.http_stream import AsgiReceive, AsgiSend, whole_body
from contextbase.models.metering import UsageMeter
from contextbase.models.model import (
    CURRENT_CONTEXT,
    Dialect,
    ModelContext,
    ModelOperation,
    ModelProtocol,
    TokenCounts,
    UsageRecord,
)
from contextbase.models.ports import HeaderList, ModelAnswer, ModelRequest, UsageLedger
from contextbase.models.prices import ModelPrice
from contextbase.models.request_body import read_document
from contextbase.models.upstreams import ChosenUpstream, Upstreams

__all__ = ["ModelGateway", "WaitLimits"]

_log = logging.getLogger(__name__)

_PATHS: Final = {
    "/v1/messages": (Dialect.MESSAGES, ModelOperation.ANSWER),
    "/v1/messages/count_tokens": (Dialect.MESSAGES, ModelOperation.COUNT_TOKENS),
    "/v1/responses": (Dialect.RESPONSES, ModelOperation.ANSWER),
    "/v1/chat/completions": (Dialect.CHAT, ModelOperation.ANSWER),
}
_MODELS: Final = "/v1/models"
_QUERIES: Final = frozenset({b"beta=true"})
_BUSY: Final = 429
_FAILED: Final = 400
_OUTPUT_LIMITS: Final = ("max_tokens", "max_output_tokens", "max_completion_tokens")
_UNSAID_OUTPUT: Final = 16_000
_MOST_OUTPUT: Final = 1_000_000
_JSON: Final = (b"content-type", b"application/json")


@dataclass(frozen=True, kw_only=True, slots=True)
class WaitLimits:
    """How long the gateway waits for an upstream that says it is busy, before it tells the client."""

    one_seconds: float = 120.0
    all_seconds: float = 300.0
    unsaid_seconds: float = 10.0  # when it does not say how long


class ModelGateway:
    def __init__(self, *, upstreams: Upstreams, ledger: UsageLedger, waits: WaitLimits | None = None) -> None:
        self._upstreams = upstreams
        self._ledger = ledger
        self._settling: set[asyncio.Task[None]] = set()
        self._waits = waits or WaitLimits()

    async def __call__(self, scope: MutableMapping[str, Any], receive: AsgiReceive, send: AsgiSend) -> None:
        path = scope["path"]
        is_anthropic = path.startswith("/v1/messages") or any(
            name == b"anthropic-version" for name, _ in scope["headers"]
        )
        answer = _Answer(send, ModelProtocol.ANTHROPIC if is_anthropic else ModelProtocol.OPENAI)
        try:
            context = _context(scope)
            if path == _MODELS and scope["method"] == "GET":
                await answer.whole(200, await self._upstreams.model_list(context, answer.protocol))
            else:
                await self._forward(context, await _request(scope, receive), answer)
        except GatewayError as error:
            await answer.problem(error.problem, str(error))
        except ModelUpstreamUnavailable as error:
            _log.warning(error.message, extra={"code": error.code})
            await answer.problem(GatewayProblem.UPSTREAM_DOWN, error.message)
        except ContextbaseError as error:
            _log.error("the model gateway failed", extra={"code": error.code}, exc_info=error)
            await answer.problem(GatewayProblem.UPSTREAM_DOWN, "The server cannot ask a model now. Try again later.")

    async def close(self) -> None:
        """Wait until everything is settled."""
        if self._settling:
            await asyncio.wait(self._settling)

    async def _forward(self, context: ModelContext, request: ModelRequest, answer: "_Answer") -> None:
        upstream = await self._upstreams.choose(context, request)
        if request.operation is not ModelOperation.ANSWER:  # costs nothing
            async with upstream.transport.open(request) as got:
                await answer.forwarded(got)
            return
        request_id = new_uuid()
        await self._ledger.reserve(context, request_id, _most(request, upstream.price))
        meter = UsageMeter(
            request.dialect, is_stream=bool(request.document.get("stream")), request_bytes=len(request.body)
        )
        billed: ModelAnswer | None = None
        try:
            waited = 0.0
            while True:
                async with upstream.transport.open(request) as got:
                    seconds = self._pause(got, waited)
                    if seconds is None:
                        billed = got if got.status < _FAILED else None
                        await answer.forwarded(got, meter)
                        return
                await context.on_wait(seconds)
                await asyncio.sleep(seconds)
                waited += seconds
        finally:
            record = None if billed is None else _record(request_id, upstream, request, billed, meter.counts())
            await self._settled(context, request_id, record)

    async def _settled(self, context: ModelContext, request_id: UUID, record: UsageRecord | None) -> None:
        """To the end, also when the client has gone."""
        task = asyncio.create_task(self._ledger.settle(context, request_id, record))
        self._settling.add(task)
        task.add_done_callback(self._settling.discard)
        try:
            await asyncio.shield(task)
        except ContextbaseError as error:  # what was set aside comes back by itself, a day later
            _log.error("a model request was not settled", extra={"code": error.code}, exc_info=error)

    def _pause(self, got: ModelAnswer, waited: float) -> float | None:
        """How long to wait before the request is sent again; None if the answer is to be passed on."""
        if got.status != _BUSY or _header(got.headers, b"x-should-retry") == b"false":
            return None
        said = _header(got.headers, b"retry-after")
        try:
            seconds = max(0.0, float(said)) if said is not None else self._waits.unsaid_seconds
        except ValueError:  # a date: nobody sends one
            seconds = self._waits.unsaid_seconds
        seconds = max(seconds, 0.01)
        return seconds if seconds <= self._waits.one_seconds and waited + seconds <= self._waits.all_seconds else None


class _Answer:
    """What goes back to the client."""

    def __init__(self, send: AsgiSend, protocol: ModelProtocol) -> None:
        self._send = send
        self.protocol = protocol
        self._has_begun = False

    async def forwarded(self, got: ModelAnswer, meter: UsageMeter | None = None) -> None:
        await self._start(got.status, passed_in(got.headers))
        async for piece in got.body:
            if meter is not None:
                meter.feed(piece)
            await self._send({"type": "http.response.body", "body": piece, "more_body": True})
        await self._send({"type": "http.response.body"})

    async def whole(self, status: int, body: bytes) -> None:
        await self._start(status, [_JSON, (b"content-length", b"%d" % len(body))])
        await self._send({"type": "http.response.body", "body": body})

    async def problem(self, problem: GatewayProblem, message: str) -> None:
        """Once an answer has begun it cannot be told: the answer is left without its end, which a client notices."""
        if not self._has_begun:
            await self.whole(problem.status, error_body(self.protocol, problem, message))

    async def _start(self, status: int, headers: HeaderList) -> None:
        self._has_begun = True
        await self._send({"type": "http.response.start", "status": status, "headers": list(headers)})


def _context(scope: MutableMapping[str, Any]) -> ModelContext:
    current: Callable[[], ModelContext | None] | None = scope.get("state", {}).get(CURRENT_CONTEXT)
    context = None if current is None else current()
    if context is None:
        raise GatewayError(GatewayProblem.NO_RUN, "No run is at work here, so no model can be asked.")
    return context


async def _request(scope: MutableMapping[str, Any], receive: AsgiReceive) -> ModelRequest:
    method, path, query = scope["method"], scope["path"], scope["query_string"]
    if method != "POST" or path not in _PATHS:
        raise GatewayError(GatewayProblem.NO_SUCH_PATH, f"There is no {method} {path[:200]}.")
    dialect, operation = _PATHS[path]
    body = await whole_body(receive)
    return ModelRequest(
        dialect=dialect,
        operation=operation,
        path=path,
        query=query.decode() if query in _QUERIES else "",
        headers=passed_out(scope["headers"]),
        body=body,
        document=read_document(body),
    )


def _most(request: ModelRequest, price: ModelPrice) -> int:
    """What it can cost at the most, about: all input is new to the cache, and the whole output is used."""
    named = [request.document.get(name) for name in _OUTPUT_LIMITS]
    output = max((value for value in named if isinstance(value, int) and value > 0), default=_UNSAID_OUTPUT)
    prompt, output = len(request.body) // 4, min(output, _MOST_OUTPUT)
    return max(
        price.cost(TokenCounts(input=prompt, output=output)), price.cost(TokenCounts(cache_write=prompt, output=output))
    )


def _record(
    request_id: UUID, upstream: ChosenUpstream, request: ModelRequest, got: ModelAnswer, counts: TokenCounts
) -> UsageRecord:
    named = _header(got.headers, b"request-id") or _header(got.headers, b"x-request-id")
    return UsageRecord(
        id=request_id,
        upstream=upstream.name,
        upstream_request_id=named.decode(errors="replace")[:200] if named and upstream.names_requests else None,
        model=request.model[:200],
        status=got.status,
        counts=counts,
        cost=upstream.price.cost(counts),
    )


def _header(headers: HeaderList, name: bytes) -> bytes | None:
    return next((value for key, value in headers if key.lower() == name), None)
