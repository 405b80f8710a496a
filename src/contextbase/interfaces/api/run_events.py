"""The events of one run: those in its session's stream that are about it, and the run's end as the last item."""

from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager
from typing import Final, Self

from fastapi import Request

from contextbase.bootstrap import CoreServices
from contextbase.conversation.model import RUN_STATE
from contextbase.errors import InvalidInput
from contextbase.identity.model import Caller
from contextbase.interfaces.api.event_stream import Chunks
from contextbase.interfaces.api.events_reader import EventsReader, ScopedItem, parse_cursor
from contextbase.interfaces.api.feed_stream import in_chunks
from contextbase.interfaces.api.item_views import event_view
from contextbase.interfaces.api.scope_readers import scope_readers
from contextbase.interfaces.api.session_views import run_details_view
from contextbase.sessions.model import AgentRun
from contextbase.sessions.states import ENDED
from contextbase.streams.model import START, Position, Scope, StreamEvent
from contextbase.wire.feed import EventItem
from contextbase.wire.session import RunEndItem, RunEventPage

__all__ = ["RunEvents"]

_AT_ONCE: Final = 200

_Found = tuple[str, EventItem | RunEndItem]  # with the cursor after it


class RunEvents:
    """An `EventSource`. It ends with the run; a reader who comes after that is told at once that it has ended."""

    def __init__(self, services: CoreServices, caller: Caller, run: AgentRun, reader: EventsReader) -> None:
        self._services = services
        self._caller = caller
        self._run = run
        self._reader = reader
        self._last = 0  # the session's newest event when a reader of an ended run came
        self._is_told = False

    @classmethod
    async def started(
        cls, request: Request, services: CoreServices, caller: Caller, run: AgentRun, after: str | None
    ) -> Self:
        """`after`: a cursor of this run's stream; None or 'start': from the run's beginning."""
        scope = Scope.session(run.session_id)
        events = cls(services, caller, run, EventsReader(await scope_readers(request, services, caller, [str(scope)])))
        head = await services.streams.head(await services.scope_access.readable(caller, scope))
        events._last = head.number
        if after is None or after == START:
            first = await services.sessions.service.first_event(run)
            after = f"{scope}={Position(epoch=head.epoch, number=first - 1)}"
        elif parse_cursor(after, [str(scope)])[str(scope)] is None:
            raise InvalidInput(f"{after[:80]!r} is not a cursor of this run; pass one that was given, or '{START}'.")
        await events._reader.start(after)
        return events

    @property
    def cursor(self) -> str:
        return self._reader.cursor

    @property
    def ended(self) -> bool:
        return self._is_told or self._reader.ended

    def following(self) -> AbstractAsyncContextManager[None]:
        return self._reader.following()

    async def read(self) -> Chunks | None:
        found = await self._taken(await self._reader.page(_AT_ONCE))
        if not found:
            return None
        return Chunks(chunks=in_chunks((at, _encoded(item)) for at, item in found), cursor=found[-1][0])

    async def wait(self, seconds: float) -> None:
        if not self._is_told:
            await self._reader.wait(seconds)

    async def page_now(self, limit: int) -> RunEventPage:
        items, more = await self._reader.page_now(limit)
        found = await self._taken(items)
        cursor = found[-1][0] if self._is_told else self.cursor
        return RunEventPage(items=[item for _, item in found], cursor=cursor, more=more and not self._is_told)

    async def _taken(self, items: Sequence[ScopedItem]) -> list[_Found]:
        """What of them is about the run, up to its end."""
        taken: list[_Found] = []
        for item in items:
            if isinstance(item.body, StreamEvent) and item.body.payload.get("run_id") == str(self._run.id):
                taken.append((item.cursor, event_view(item.body)))
                if _is_end(item.body):
                    return [*taken, await self._end(item.cursor)]
        if self._run.state in ENDED and int(self.cursor.rpartition(".")[2]) >= self._last:
            taken.append(await self._end(self.cursor))
        return taken

    async def _end(self, cursor: str) -> _Found:
        details = await self._services.sessions.service.run(self._caller, self._run.id)
        self._is_told = True
        return cursor, RunEndItem(run=run_details_view(details))


def _is_end(event: StreamEvent) -> bool:
    return event.kind == RUN_STATE and event.payload.get("state") in ENDED


def _encoded(item: EventItem | RunEndItem) -> bytes:
    return f"event: {item.type}\ndata: {item.model_dump_json()}\n\n".encode()
