"""Streams as their writers and readers know them: append, publish, read, follow, prune, delete."""

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from datetime import timedelta
from itertools import chain
from typing import Final

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.errors import CursorOutdated, NotFound, TooLarge
from contextbase.streams.access import ReadableScope
from contextbase.streams.bodies import LARGEST_PAYLOAD_BYTES, BodyContent, EventBodies
from contextbase.streams.event_window import EventWindow, StreamNews, page_of_events
from contextbase.streams.model import START, NewEvent, Position, Scope, ScopeKind, StreamHead, StreamPage
from contextbase.streams.notifier import Notifier
from contextbase.streams.repository import StreamRepository, encoded
from contextbase.streams.window import TICK_SECONDS, SharedWindows, WindowOwner

__all__ = ["EventFollower", "StreamService"]

_BATCH: Final = 5000  # events removed in one transaction
_TRIES: Final = 5
_KEEPS_BODY: Final = "stream_events_keep_their_body"


class StreamService(WindowOwner[EventWindow]):
    """A session's, a user's and the system's events take no lock but that of their own stream."""

    def __init__(
        self,
        *,
        database: Database,
        repository: StreamRepository,
        bodies: EventBodies,
        notifier: Notifier,
        retention: Mapping[ScopeKind, timedelta],  # a kind that is not in it is kept until it is deleted
    ) -> None:
        self._database = database
        self._repository = repository
        self._bodies = bodies
        self._notifier = notifier
        self._retention = retention
        news = StreamNews(database, repository)
        self._windows = SharedWindows(lambda scope: EventWindow(scope=scope, news=news, notifier=notifier))

    async def prepared(self, *events: NewEvent) -> list[NewEvent]:
        """Events as `append` takes them: checked, with large payloads stored as blobs. Do this before the transaction,
        which would otherwise keep others waiting for the blob store."""
        return await self._bodies.stored(events)

    async def append(self, connection: Connection, scope: Scope, events: Sequence[NewEvent]) -> list[int]:
        """Number and store events in the caller's transaction, which others who append to the scope wait for. Call
        `hint` once it has ended. A payload over 8 KiB must be `prepared`: else `TooLarge`."""
        return (await self.append_to_all(connection, {scope: events}))[scope]

    async def append_to_all(
        self, connection: Connection, events_of: Mapping[Scope, Sequence[NewEvent]]
    ) -> dict[Scope, list[int]]:
        """As `append`, to several streams with few statements."""
        for event in chain.from_iterable(events_of.values()):
            if event.body is None and len(encoded(event.payload).encode()) > LARGEST_PAYLOAD_BYTES:
                raise TooLarge(
                    f"The payload of the event '{event.kind}' has more than {LARGEST_PAYLOAD_BYTES} bytes of JSON; "
                    "prepare the event before the transaction, so that its body is stored as a blob."
                )
        return await self._repository.append_to_all(connection, events_of)

    def hint(self, scope: Scope) -> None:
        """Wake the readers of a scope."""
        self._notifier.hint(scope)

    async def publish(self, scope: Scope, *events: NewEvent) -> list[int]:
        """Store events in a transaction of their own and wake the scope's readers; returns their numbers."""
        for left in reversed(range(_TRIES)):
            prepared = await self._bodies.stored(events)
            try:
                async with self._database.transaction() as connection:
                    numbers = await self._repository.append(connection, scope, prepared)
                break
            except asyncpg.ForeignKeyViolationError as error:
                # GC removed a body right after it was stored: store it again.
                if not left or error.constraint_name != _KEEPS_BODY:
                    raise
        self._notifier.hint(scope)
        return numbers

    async def head(self, readable: ReadableScope) -> StreamHead:
        async with self._database.connection() as connection:
            return await self._repository.head(connection, readable.scope)

    def position(self, head: StreamHead, text: str | None) -> Position:
        """Where a reader wants to start: nothing means now, 'start' the first event, else a cursor it was given.

        Raises `CursorOutdated` for one from before a restore, or of a future that this stream does not have."""
        if text is None:
            return head.position
        if text == START:
            return Position(epoch=head.epoch)
        position = Position.parse(text)
        _check(position, head)
        return position

    async def read(self, readable: ReadableScope, after: Position, *, limit: int = 100) -> StreamPage:
        """What follows a position, straight from the database."""
        async with self._database.connection() as connection:
            head = await self._repository.head(connection, readable.scope)
            _check(after, head)
            events = await self._repository.events(
                connection, readable.scope, after=after.number, until=head.number, limit=limit
            )
        return page_of_events(events, head=head, after=after, limit=limit)

    @asynccontextmanager
    async def follow(self, readable: ReadableScope) -> "AsyncIterator[EventFollower]":
        """Share the process's window on a scope while the block lasts."""
        async with self._windows.opened(readable.scope) as window:
            yield EventFollower(self, readable, window)

    async def body(self, readable: ReadableScope, number: int) -> BodyContent:
        """The whole payload of an event that has a preview of it; raises `NotFound` for any other."""
        async with self._database.connection() as connection:
            event = await self._repository.event(connection, readable.scope, number)
        if event is None or event.body is None:
            raise NotFound(f"The event {number} of {readable.scope} has no body of its own, or was removed.")
        return self._bodies.content(event.body)

    async def prune(self) -> int:
        """Remove events that are older than their scope's retention; returns how many."""
        removed = 0
        for kind, age in self._retention.items():
            count = _BATCH
            while count == _BATCH:
                async with self._database.connection() as connection:
                    count = await self._repository.prune(connection, kind, age, limit=_BATCH)
                removed += count
        return removed

    async def delete(self, scope: Scope) -> None:
        """Remove all of a scope's events, and the stream itself; its followers are told that it is gone. A project's
        counter stays, since its feed goes on. Interrupted, it can be called again."""
        count = _BATCH
        while count == _BATCH:
            async with self._database.connection() as connection:
                count = await self._repository.delete_events(connection, scope, limit=_BATCH)
        if scope.kind is not ScopeKind.PROJECT:
            async with self._database.connection() as connection:
                await self._repository.delete_stream(connection, scope)
        self._notifier.hint(scope)


class EventFollower:
    """One reader's view of a shared window. Reading what is new takes no database at all."""

    def __init__(self, service: StreamService, readable: ReadableScope, window: EventWindow) -> None:
        self._service = service
        self._readable = readable
        self._window = window

    @property
    def ended(self) -> bool:
        return self._service.ended

    def is_past(self, position: Position) -> bool:
        """Whether there is something to read after a position."""
        return self._window.is_past(position)

    def waking(self, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Call back when there may be something new, and about every second, while the block lasts."""
        return self._window.waking(callback)

    async def read(self, after: Position, *, limit: int = 100) -> StreamPage:
        """Raises `CursorOutdated` once the stream was restored, `NotFound` once it was deleted."""
        page = self._window.page(after, limit)
        return await self._service.read(self._readable, after, limit=limit) if page is None else page

    async def wait(self, after: Position, seconds: float) -> None:
        """Until there may be something new after a position, the server stops or the time is over; at most about a
        second, so look at the clock and wait again."""
        if self.ended or seconds <= 0 or self._window.is_past(after):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, 2 * TICK_SECONDS)):
                await self._window.moved()


def _check(position: Position, head: StreamHead) -> None:
    if position.is_before_all:
        return
    if position.epoch != head.epoch or position.number > head.number:
        raise CursorOutdated(
            f"The cursor is from before {head.scope} was restored; read it from its start.", cursor=str(head.position)
        )
