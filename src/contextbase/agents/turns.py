"""What the adapters of agent programs have in common: a turn that can be stopped, and its ends."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, Final, Protocol

from contextbase.agents.model import AgentTurn, SteerMessage, TurnEnd, TurnFailure, TurnOutcome
from contextbase.agents.ports import EventSink
from contextbase.agents.program import AgentProgram

__all__ = [
    "RESUME_FAILED",
    "ConversationForgotten",
    "ProgramRefused",
    "failed",
    "missing",
    "named",
    "read_beside",
    "resume_failed",
    "steered",
    "turn_end",
    "worked",
]

RESUME_FAILED: Final = "resume_failed"
"""The code of a turn that did not begin, because the program does not know the conversation it should go on with."""

_MODEL_ERRORS: Final = {
    "budget_exhausted": re.compile(r"\bmodel budget\b"),  # the gateway's own words
    "context_overflow": re.compile(r"prompt is too long|context window|context length|too many tokens", re.IGNORECASE),
}
_INTERRUPT_PATIENCE: Final = 10.0  # seconds; then its process is ended


class ProgramRefused(Exception):
    """An agent's program answered a request with an error."""


class ConversationForgotten(Exception):
    """An agent's program does not know the conversation."""


class Translator(Protocol):
    """Makes our events of what a program says in a turn."""

    @property
    def end(self) -> TurnEnd | None: ...

    def closing(self) -> Iterable[tuple[str, Mapping[str, Any]]]: ...


async def worked(
    work: Coroutine[Any, Any, None], canceled: asyncio.Event, interrupt: Callable[[], Awaitable[None]]
) -> None:
    """Let it work to its end. When `canceled` is set, interrupt it and wait a little for the end."""
    working = asyncio.create_task(work)
    stopping = asyncio.create_task(canceled.wait())
    try:
        await asyncio.wait((working, stopping), return_when=asyncio.FIRST_COMPLETED)
        if not working.done():
            await interrupt()
            await asyncio.wait((working,), timeout=_INTERRUPT_PATIENCE)
        if working.done():
            working.result()
    finally:
        for task in (working, stopping):
            task.cancel()
        await asyncio.gather(working, stopping, return_exceptions=True)


@asynccontextmanager
async def steered(sink: EventSink, steer: Callable[[SteerMessage], Awaitable[None]]) -> AsyncIterator[None]:
    """Give the agent what people say to the working turn, one after the other, while the block lasts."""

    async def give() -> None:
        while True:
            await steer(await sink.steering.get())

    giving = asyncio.create_task(give())
    try:
        yield
    finally:
        giving.cancel()
        await asyncio.gather(giving, return_exceptions=True)


async def read_beside(start: Coroutine[Any, Any, None], read: Coroutine[Any, Any, None]) -> None:
    """Read to the turn's end while the requests that start it are made. What these raise ends the reading."""
    reading, starting = asyncio.create_task(read), asyncio.create_task(start)
    try:
        await asyncio.wait((reading, starting), return_when=asyncio.FIRST_COMPLETED)
        if starting.done():
            starting.result()
        await reading
    finally:
        for task in (reading, starting):
            task.cancel()
        await asyncio.gather(reading, starting, return_exceptions=True)


def failed(code: str, message: str, session_id: str | None, *, is_retryable: bool = False) -> TurnEnd:
    failure = TurnFailure(code=code, message=message.strip(), is_retryable=is_retryable)
    return TurnEnd(outcome=TurnOutcome.FAILED, sdk_session_id=session_id, failure=failure)


def missing(program: str, turn: AgentTurn) -> TurnEnd:
    return failed("agent_missing", f"{program} is not installed in this sandbox.", turn.resume)


def resume_failed(program: str, turn: AgentTurn, said: str) -> TurnEnd:
    return failed(RESUME_FAILED, f"{program} does not know the conversation {turn.resume}: {said[:1000]}", turn.resume)


def named(end: TurnEnd) -> TurnEnd:
    """With a code of its own for what programs tell as just some error of the model: they pass on its words alone."""
    if end.failure is None or end.failure.code != "model_error":
        return end
    for code, words in _MODEL_ERRORS.items():
        if words.search(end.failure.message):
            return replace(end, failure=replace(end.failure, code=code, is_retryable=False))
    return end


async def turn_end(
    program: str,
    translator: Translator,
    process: AgentProgram,
    sink: EventSink,
    *,
    canceled: asyncio.Event,
    session_id: str | None,
) -> TurnEnd:
    """How a turn ended that is not read any more. What is still open in its events is closed."""
    for kind, data in translator.closing():
        await sink.emit(kind, data)
    if canceled.is_set():
        return TurnEnd(outcome=TurnOutcome.CANCELED, sdk_session_id=session_id)
    if translator.end is not None:
        return translator.end
    code = await process.wait()
    message = f"{program} ended with {code} in the middle of a turn. {process.last_words[-1000:]}"
    return failed("agent_died", message, session_id, is_retryable=True)
