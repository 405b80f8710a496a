"""The scripted model: the same request gets the same answer, but for faults that a script wants once."""

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from typing import Any, Final

from contextbase.errors import ModelUpstreamUnavailable
from contextbase.lru_cache import LruCache
from contextbase.models.model import Dialect, ModelOperation, ModelProtocol
from contextbase.models.ports import HeaderList, ModelAnswer, ModelRequest
from contextbase.models.scripted.anthropic_messages import messages_document, messages_events
from contextbase.models.scripted.chat_history import ChatHistory, read_history
from contextbase.models.scripted.demonstration import demonstration_turns
from contextbase.models.scripted.openai_chat import chat_document, chat_events
from contextbase.models.scripted.openai_responses import responses_document, responses_events
from contextbase.models.scripted.rendering import Rendered, ResolvedPart, ScriptedAnswer
from contextbase.models.scripted.script import AnswerText, BreakOff, CallTool, Fault, Pause, ScriptTurn, parse_script
from contextbase.models.scripted.tool_calls import OfferedCall, offered_call, search_call

__all__ = ["ScriptedModel"]

_WITHOUT_TOOLS: Final = ScriptTurn(parts=(AnswerText("A demonstration"),))  # a program asks for a title, or the like
_AFTER_THE_SCRIPT: Final = ScriptTurn(parts=(AnswerText("Done."),))
_MOST_FAULTS: Final = 10_000

_Events = Callable[[ScriptedAnswer], Iterator[Rendered]]
_Document = Callable[[ScriptedAnswer], dict[str, Any]]
_WRITERS: Final[dict[Dialect, tuple[_Events, _Document]]] = {
    Dialect.MESSAGES: (messages_events, messages_document),
    Dialect.RESPONSES: (responses_events, responses_document),
    Dialect.CHAT: (chat_events, chat_document),
}


class ScriptedModel:
    """A `ModelTransport` that needs no network."""

    def __init__(self) -> None:
        self._given: LruCache[str, int] = LruCache(_MOST_FAULTS)  # how many faults a request has got

    @asynccontextmanager
    async def open(self, request: ModelRequest) -> AsyncIterator[ModelAnswer]:
        if request.operation is ModelOperation.COUNT_TOKENS:
            yield _json_answer(200, {"input_tokens": _tokens(request.body)})
            return
        history = read_history(request)
        turn = _turn(history)
        key = hashlib.sha256(request.body).hexdigest()
        if (fault := self._fault(key, turn)) is not None:
            yield _fault_answer(request.dialect.protocol, fault)
            return
        answer = ScriptedAnswer(
            id=key[:16],
            model=request.model,
            parts=tuple(_resolved(turn, history)),
            input_tokens=_tokens(request.body),
            output_tokens=sum(_written(part) for part in turn.parts),
        )
        events, document = _WRITERS[request.dialect]
        if request.document.get("stream"):
            headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache")]
            yield ModelAnswer(status=200, headers=[*headers, _request_id(key)], body=_played(events(answer)))
        else:
            await _pauses(answer.parts)
            yield _json_answer(200, document(answer), _request_id(key))

    def _fault(self, key: str, turn: ScriptTurn) -> Fault | None:
        given = self._given.get(key) or 0
        if given >= len(turn.faults):
            return None
        fault = turn.faults[given]
        if fault.once:
            self._given.put(key, given + 1)
        return fault


def _turn(history: ChatHistory) -> ScriptTurn:
    users = history.users()
    if not history.tools or not users:
        return _WITHOUT_TOOLS
    for at, text in reversed(users):
        if (turns := parse_script(text)) is None:
            continue
        number = history.answers_after(at)
        if number < len(turns):
            return turns[number]
        if at == users[-1][0]:
            return _AFTER_THE_SCRIPT
        break
    at, task = users[-1]
    turns = demonstration_turns(task, history, at)
    return turns[min(history.answers_after(at), len(turns) - 1)]


def _resolved(turn: ScriptTurn, history: ChatHistory) -> Iterator[ResolvedPart]:
    """A turn whose tools have to be found is played when they are."""
    if searches := list(filter(None, (search_call(call, history) for call in turn.calls))):
        yield from searches
        return
    for part in turn.parts:
        if not isinstance(part, CallTool):
            yield part
            continue
        try:
            call = offered_call(part, history)
        except (KeyError, TypeError) as error:
            yield AnswerText(f"The script's call of '{part.name}' lacks an argument ({error}).")
            continue
        yield AnswerText(f"This program offers no tool '{part.name}'.") if call is None else call


async def _played(rendered: Iterator[Rendered]) -> AsyncIterator[bytes]:
    for piece in rendered:
        if isinstance(piece, Pause):
            await asyncio.sleep(piece.seconds)
        elif isinstance(piece, BreakOff):
            raise ModelUpstreamUnavailable("The scripted model broke off its answer, as its script says.")
        else:
            yield piece


async def _pauses(parts: tuple[ResolvedPart, ...]) -> None:
    await asyncio.sleep(sum(part.seconds for part in parts if isinstance(part, Pause)))
    if any(isinstance(part, BreakOff) for part in parts):
        raise ModelUpstreamUnavailable("The scripted model broke off its answer, as its script says.")


def _fault_answer(protocol: ModelProtocol, fault: Fault) -> ModelAnswer:
    error = {"type": fault.kind, "message": fault.message}
    document = {"type": "error", "error": error} if protocol is ModelProtocol.ANTHROPIC else {"error": error}
    more = [] if fault.retry_after is None else [(b"retry-after", f"{fault.retry_after:g}".encode())]
    return _json_answer(fault.status, document, *more)


def _json_answer(status: int, document: dict[str, Any], *more: tuple[bytes, bytes]) -> ModelAnswer:
    body = json.dumps(document).encode()
    headers: HeaderList = [(b"content-type", b"application/json"), (b"content-length", b"%d" % len(body)), *more]

    async def once() -> AsyncIterator[bytes]:
        yield body

    return ModelAnswer(status=status, headers=headers, body=once())


def _request_id(key: str) -> tuple[bytes, bytes]:
    return (b"request-id", f"req_scripted_{key[:16]}".encode())


def _tokens(body: bytes) -> int:
    return len(body) // 4 + 1


def _written(part: object) -> int:
    match part:
        case AnswerText():
            return len(part.text) // 4 + 1
        case CallTool():
            return len(json.dumps(part.input)) // 4 + 8
        case OfferedCall() | _:
            return 0
