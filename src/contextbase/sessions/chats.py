"""Sessions as chat clients know them: found by the id that a client chose, shown as the client's own messages."""

import json
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import lru_cache
from typing import Any, Final
from uuid import UUID

import asyncpg

from contextbase.conversation.model import MESSAGE_USER, AgentMessage, MessagePart, SessionEvent
from contextbase.conversation.projection import Projection
from contextbase.conversation.ui_messages import UIMessageBuilder
from contextbase.conversation.ui_stream import RunOutcome, RunStream, user_message, without_rewound
from contextbase.db.database import Database
from contextbase.errors import Forbidden, InvalidInput, NotFound
from contextbase.identity.model import Caller
from contextbase.models.model import RunUsage
from contextbase.models.repository import ModelRepository
from contextbase.sessions.model import AgentRun, AgentSession, SessionId, SessionRequest
from contextbase.sessions.service import SessionService
from contextbase.sessions.states import ENDED
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import Position, Scope, StreamEvent
from contextbase.streams.service import StreamService

__all__ = ["ChatMessages", "Chats", "run_start"]

_LONGEST_ID: Final = 200
_AT_ONCE: Final = 1000
_TO_THE_END: Final = 2**62
_MICRO: Final = 1_000_000
_WHOSE: Final = frozenset({"run_id", "attempt", "ts"})


@dataclass(frozen=True, kw_only=True, slots=True)
class ChatMessages:
    messages: Sequence[Mapping[str, Any]]  # UIMessages, in order
    next_before: int | None  # the number of a run; None: there is nothing before them


@dataclass(frozen=True, kw_only=True, slots=True)
class Chats:
    database: Database
    sessions: SessionService
    streams: StreamService
    models: ModelRepository = field(default_factory=ModelRepository)

    async def find(self, caller: Caller, chat_id: str, *, is_to_change: bool = False) -> AgentSession:
        """By the session's id, or by what the caller's client calls it. Raises `NotFound`."""
        _check_id(chat_id)
        access = self.sessions.access.driven if is_to_change else self.sessions.access.opened
        async with self.database.transaction() as connection:
            if (session_id := _as_uuid(chat_id)) is not None:
                try:
                    return await access(connection, caller, SessionId(session_id))
                except NotFound:
                    pass  # a client may choose UUIDs, too
            named = await self.sessions.repository.of_chat(connection, caller.principal.id, chat_id)
            if named is None:
                raise NotFound(f"You have no chat {chat_id!r}.")
            return await access(connection, caller, named.id)

    async def found_or_made(
        self, caller: Caller, chat_id: str | None, request: Callable[[], Awaitable[SessionRequest]]
    ) -> AgentSession:
        """The caller's chat; a new session, made as the request says, if the id is new."""
        if chat_id is None:
            return await self.sessions.create(caller, await request())
        try:
            return await self.find(caller, chat_id, is_to_change=True)
        except NotFound:
            await self._refuse_readers(caller, chat_id)
        try:
            return await self.sessions.create(caller, await request(), chat_id=chat_id)
        except asyncpg.UniqueViolationError:  # another first message of the same chat was faster
            return await self.find(caller, chat_id)

    async def _refuse_readers(self, caller: Caller, chat_id: str) -> None:
        """Whoever may only read a session does not mean a new one by its id."""
        try:
            await self.find(caller, chat_id)
        except NotFound:
            return
        raise Forbidden("You may read this session, and not send messages to it; its owner can let you.")

    async def at_work(self, caller: Caller, session_id: SessionId) -> AgentRun | None:
        """The run that works, or will be the first to work."""
        open_runs = (await self.sessions.get(caller, session_id)).open_runs
        return open_runs[0] if open_runs else None

    async def messages(
        self, caller: Caller, session_id: SessionId, *, before: int | None = None, limit: int = 50
    ) -> ChatMessages:
        """The newest, before a run's number. A run is a person's message and the agent's, which may still grow."""
        most = max(1, limit // 2)
        async with self.database.transaction() as connection:
            await self.sessions.access.opened(connection, caller, session_id)
            runs = await self.sessions.repository.shown_runs(connection, session_id, before=before, limit=most + 1)
            after = before and await self.sessions.repository.shown_runs(
                connection, session_id, before=before + 1, limit=1
            )
        shown = runs[:most]
        until = await self.sessions.first_event(after[0]) if after else _TO_THE_END
        messages = await self._built(session_id, shown, until)
        return ChatMessages(messages=messages, next_before=shown[-1].number if len(runs) > most else None)

    async def _built(
        self, session_id: SessionId, newest_first: Sequence[AgentRun], until: int
    ) -> Sequence[Mapping[str, Any]]:
        if not newest_first:
            return []
        runs: dict[UUID, AgentRun] = {run.id: run for run in reversed(newest_first)}
        events = await self._events(session_id, newest_first[-1], runs, until)
        outcomes = await self.outcomes([run for run in runs.values() if any(map(_is_end, events[run.id]))])
        messages = []
        for run_id, run in runs.items():
            stream, builder = RunStream(run_id), UIMessageBuilder()
            _apply(builder, run_start(stream, run))
            for event in without_rewound(events[run_id]):
                if event.kind == MESSAGE_USER:
                    messages.append(user_message(event))
                _apply(builder, stream.chunks(event))
                if _is_end(event):
                    _apply(builder, stream.end(outcomes[run_id]))
            messages.append(builder.message)
        return messages

    async def _events(
        self, session_id: SessionId, oldest: AgentRun, runs: Mapping[UUID, AgentRun], until: int
    ) -> dict[UUID, list[SessionEvent]]:
        """What happened in these runs. A run may be rewound after its end, before the next one."""
        found: dict[UUID, list[SessionEvent]] = {run_id: [] for run_id in runs}
        left, more = set(runs), True
        position = Position(number=await self.sessions.first_event(oldest) - 1)
        readable = ReadableScope(scope=Scope.session(session_id))
        while more and (left or position.number < until):
            events, position, more = await self.past(readable, position)
            for event in events:
                if event.run_id in found:
                    found[event.run_id].append(event)
                    if _is_end(event):
                        left.discard(event.run_id)
        return found

    async def past(
        self, readable: ReadableScope, after: Position, *, limit: int = _AT_ONCE
    ) -> tuple[list[SessionEvent], Position, bool]:
        """A page of a session's events with whole payloads; where to go on, and whether there is more."""
        if after.is_before_all or after.epoch.int == 0:
            head = await self.streams.head(readable)
            after = Position(epoch=head.epoch, number=after.number)
        page = await self.streams.read(readable, after, limit=limit)
        return await self.whole(readable, page.events), page.position, page.more

    async def whole(self, readable: ReadableScope, events: Iterable[StreamEvent]) -> list[SessionEvent]:
        """Those about runs. What is too large for a row of the stream is taken from the rows that are made of it."""
        found = [(event, placed) for event in events if (placed := _placed(event)) is not None]
        if not any(event.body is not None for event, _ in found):
            return [placed for _, placed in found]
        cut = [placed for event, placed in found if event.body is not None]
        async with self.database.connection() as connection:
            rows = await self.sessions.conversation.to_change(connection, cut)
        return [
            placed if event.body is None else (_from_rows(placed, rows) or await self._from_body(readable, placed))
            for event, placed in found
        ]

    async def _from_body(self, readable: ReadableScope, event: SessionEvent) -> SessionEvent:
        content = await self.streams.body(readable, event.number)
        payload = json.loads(b"".join([piece async for piece in content.pieces]))
        return replace(event, data=_data(payload))

    async def outcomes(self, runs: Sequence[AgentRun]) -> dict[UUID, RunOutcome]:
        """Of runs that have ended."""
        async with self.database.connection() as connection:
            usage = await self.models.usage_of_runs(connection, [run.id for run in runs])
        return {run.id: _outcome(run, usage.get(run.id)) for run in runs}


def run_start(stream: RunStream, run: AgentRun) -> list[dict[str, Any]]:
    return stream.start(created_at=run.created_at, provider=run.provider, model=run.model)


def _apply(builder: UIMessageBuilder, chunks: Iterable[dict[str, Any]]) -> None:
    for chunk in chunks:
        builder.apply(chunk)


def _is_end(event: SessionEvent) -> bool:
    return event.kind == "run.state" and event.data.get("state") in ENDED


def _outcome(run: AgentRun, usage: RunUsage | None) -> RunOutcome:
    metadata: dict[str, object] = {}
    if usage is not None:
        counts = usage.counts
        metadata["usage"] = {
            "input_tokens": counts.input,
            "output_tokens": counts.output,
            "cache_read_tokens": counts.cache_read,
            "cache_write_tokens": counts.cache_write,
        }
        metadata["cost"] = usage.cost / _MICRO
    if run.started_at is not None and run.ended_at is not None:
        metadata["duration_ms"] = round((run.ended_at - run.started_at).total_seconds() * 1000)
    return RunOutcome(state=run.state, message=run.message, landed=run.landed, metadata=metadata)


def _placed(event: StreamEvent) -> SessionEvent | None:
    """None: it is not about a run."""
    payload = event.payload
    run_id, ts = payload.get("run_id"), payload.get("ts")
    if not isinstance(run_id, str) or not isinstance(ts, str):
        return None
    return SessionEvent(
        number=event.number,
        kind=event.kind,
        run_id=_run_uuid(run_id),
        attempt=int(str(payload.get("attempt", 0))),
        ts=datetime.fromisoformat(ts),
        data=_data(payload),
    )


@lru_cache(maxsize=1024)
def _run_uuid(text: str) -> UUID:
    """A run's events come by the thousand."""
    return UUID(text)


def _data(payload: Mapping[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in payload.items() if name not in _WHOSE}


def _from_rows(event: SessionEvent, rows: Projection) -> SessionEvent | None:
    """None: the rows do not have it."""
    if event.kind in ("tool.start", "tool.end"):
        tool = rows.tools.get((event.run_id, event.attempt, str(event.data.get("tool_id"))))
        if tool is None:
            return None
        told = {"title": tool.title, "input": tool.input} if event.kind == "tool.start" else {"output": tool.output}
        return replace(event, data={**event.data, **told, "truncated": tool.truncated})
    message = rows.messages.get((event.run_id, event.attempt, str(event.data.get("message_id"))))
    part = None if message is None else _part(event, message)
    return None if part is None else replace(event, data={**event.data, "text": part.text})


def _part(event: SessionEvent, message: AgentMessage) -> MessagePart | None:
    kind, _, what = event.kind.partition(".")
    if what == "delta":  # a row has what came after it, too
        return None
    name = "reasoning" if kind == "reasoning" else "text"
    number = int(str(event.data.get("part", 0)))
    return next((part for part in message.parts if (part.kind, part.part) == (name, number)), None)


def _check_id(chat_id: str) -> None:
    if not (0 < len(chat_id) <= _LONGEST_ID and chat_id.isprintable()):
        raise InvalidInput(f"A chat's id has 1 to {_LONGEST_ID} printable characters.")


def _as_uuid(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
