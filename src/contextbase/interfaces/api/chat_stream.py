"""A run as the AI SDK's UI message stream: what has happened, then what happens, to the run's end."""

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Any, Final, Self

from fastapi import Request

from contextbase.bootstrap import CoreServices
from contextbase.conversation.model import RUN_STATE, SessionEvent
from contextbase.conversation.ui_stream import Chunk, RunStream, joined
from contextbase.identity.model import Caller
from contextbase.interfaces.api.event_stream import Chunks, EventStream
from contextbase.interfaces.api.events_reader import EventsReader
from contextbase.interfaces.api.scope_readers import scope_readers
from contextbase.sessions.chats import run_start
from contextbase.sessions.model import AgentRun
from contextbase.sessions.states import ENDED
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import Position, Scope, StreamEvent

__all__ = ["ChatEvents", "chat_stream"]

_AT_ONCE: Final = 500
_PIECE_BYTES: Final = 64 * 1024
_HEADERS: Final = {
    "cache-control": "no-cache",
    "x-vercel-ai-ui-message-stream": "v1",
    "x-accel-buffering": "no",
}


class ChatEvents:
    """An `EventSource`. What is over is sent whole: a client that comes back builds the message again."""

    def __init__(
        self, services: CoreServices, caller: Caller, run: AgentRun, readable: ReadableScope, reader: EventsReader
    ) -> None:
        self._services = services
        self._caller = caller
        self._run = run
        self._readable = readable
        self._reader = reader
        self._stream = RunStream(run.id)
        self._at: Position
        self._live_after: int  # the number of the last event that is not live
        self._has_begun = False
        self._is_told = False

    @classmethod
    async def started(cls, request: Request, services: CoreServices, caller: Caller, run: AgentRun) -> Self:
        scope = Scope.session(run.session_id)
        readable = await services.scope_access.readable(caller, scope)
        reader = EventsReader(await scope_readers(request, services, caller, [str(scope)]))
        events = cls(services, caller, run, readable, reader)
        head = await services.streams.head(readable)
        await reader.start(f"{scope}={head.position}")
        events._live_after = head.number
        events._at = Position(epoch=head.epoch, number=await services.sessions.service.first_event(run) - 1)
        return events

    @property
    def cursor(self) -> str:
        return self._reader.cursor if self._is_live else str(self._at)

    @property
    def ended(self) -> bool:
        return self._is_told or self._reader.ended

    @property
    def _is_live(self) -> bool:
        return self._at.number >= self._live_after

    def following(self) -> AbstractAsyncContextManager[None]:
        return self._reader.following()

    async def read(self) -> Chunks | None:
        chunks: list[Chunk] = []
        if not self._has_begun:
            self._has_begun = True
            chunks += run_start(self._stream, self._run)
        events = await self._live() if self._is_live else await self._past()
        for event in events:
            if event.run_id != self._run.id:
                continue
            chunks += self._stream.chunks(event)
            if event.kind == RUN_STATE and event.data.get("state") in ENDED:
                chunks += await self._end()
                break
        if not chunks:
            return None
        return Chunks(chunks=_encoded(joined(chunks), is_last=self._is_told), cursor=self.cursor)

    async def wait(self, seconds: float) -> None:
        if self._is_live and not self._is_told:
            await self._reader.wait(seconds)

    async def _past(self) -> Sequence[SessionEvent]:
        events, position, _ = await self._services.sessions.chats.past(self._readable, self._at, limit=_AT_ONCE)
        self._at = position
        return [event for event in events if event.number <= self._live_after]

    async def _live(self) -> Sequence[SessionEvent]:
        items = await self._reader.page(_AT_ONCE)
        found = [item.body for item in items if isinstance(item.body, StreamEvent)]
        return await self._services.sessions.chats.whole(self._readable, found)

    async def _end(self) -> list[Chunk]:
        details = await self._services.sessions.service.run(self._caller, self._run.id)
        outcomes = await self._services.sessions.chats.outcomes([details.run])
        self._is_told = True
        return self._stream.end(outcomes[self._run.id])


async def chat_stream(request: Request, services: CoreServices, caller: Caller, run: AgentRun) -> EventStream:
    events = await ChatEvents.started(request, services, caller, run)
    ids = {"x-session-id": str(run.session_id), "x-run-id": str(run.id)}
    return EventStream(events, headers={**_HEADERS, **ids})


def _encoded(chunks: Iterable[dict[str, Any]], *, is_last: bool) -> tuple[bytes, ...]:
    pieces = [b""]
    for chunk in chunks:
        text = json.dumps(chunk, ensure_ascii=False, separators=(",", ":"))
        pieces[-1] += f"data: {text}\n\n".encode()
        if len(pieces[-1]) > _PIECE_BYTES:
            pieces.append(b"")
    if is_last:
        pieces[-1] += b"data: [DONE]\n\n"
    return tuple(piece for piece in pieces if piece)
