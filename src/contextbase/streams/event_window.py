"""The newest events of a session's, a user's or the system's stream."""

from collections.abc import Sequence
from typing import Final

from contextbase.db.coalescer import Coalescer
from contextbase.db.database import Database
from contextbase.errors import CursorOutdated, NotFound
from contextbase.streams.model import Position, Scope, StreamEvent, StreamHead, StreamPage
from contextbase.streams.notifier import Notifier
from contextbase.streams.repository import StreamRepository
from contextbase.streams.tail import Tail
from contextbase.streams.window import Window

__all__ = ["EventWindow", "StreamNews", "page_of_events"]

_AT_ONCE: Final = 500
_MOST_STREAMS: Final = 100
_NOTHING: Final = 2**62  # no event comes after it
_MOST_KEPT: Final = 1000


class StreamNews:
    """What is new in the streams that are looked at together: they are hinted at together when many agents speak."""

    def __init__(self, database: Database, repository: StreamRepository) -> None:
        self._database = database
        self._repository = repository
        self._rounds: Coalescer[None, tuple[Scope, int], tuple[StreamHead, list[StreamEvent]]] = Coalescer(
            self._read, most=_MOST_STREAMS
        )

    async def after(self, scope: Scope, number: int) -> tuple[StreamHead, list[StreamEvent]]:
        """How far it goes, and its first events after a number."""
        return await self._rounds.ask(None, (scope, number))

    async def _read(self, _key: None, asked: Sequence[tuple[Scope, int]]) -> list[tuple[StreamHead, list[StreamEvent]]]:
        async with self._database.connection() as connection:
            return await self._repository.news(connection, asked, limit=_AT_ONCE)


class EventWindow(Window):
    def __init__(self, *, scope: Scope, news: StreamNews, notifier: Notifier) -> None:
        super().__init__(scope=scope, notifier=notifier)
        self._news = news
        self._head: StreamHead | None = None
        self._events: Tail[StreamEvent] = Tail(0)

    @property
    def head(self) -> StreamHead | None:
        """How far it can be read; None before anything can."""
        return self._head

    def page(self, after: Position, limit: int) -> StreamPage | None:
        """What follows a position, from memory; None when it lies before what is kept."""
        if self._gone is not None:
            raise self._gone
        head = self._head
        if head is None:
            return StreamPage(events=(), position=after, more=False)
        if after.epoch != head.epoch and not after.is_before_all:
            raise CursorOutdated(f"The stream {self._scope} starts over after a restore; read it from its start.")
        if after.number < self._events.after:
            return None
        return page_of_events(self._events.since(after.number, limit), head=head, after=after, limit=limit)

    def is_past(self, position: Position) -> bool:
        """Whether there is something to read, or to be told, after a position."""
        head = self._head
        if head is None:
            return self._gone is not None
        return head.number > position.number or head.epoch != position.epoch or self._gone is not None

    async def _advance(self) -> bool:
        known = self._head
        found, events = await self._news.after(self._scope, _NOTHING if known is None else known.number)
        if known is not None and known.exists and not found.exists:
            raise NotFound(f"The stream {self._scope} was deleted.")
        if known is None or (known.exists and known.epoch != found.epoch):
            self._events = Tail(found.number)
            self._move(found)
            return False
        if found == known:
            return False
        whole = len(events) < _AT_ONCE
        if not whole:
            found = StreamHead(scope=self._scope, epoch=found.epoch, number=events[-1].number)
        self._events.entries.extend(events)
        self._events.drop_first(len(self._events.entries) - _MOST_KEPT)
        self._move(found)
        return not whole

    def _move(self, head: StreamHead) -> None:
        self._head = head
        self.wake()


def page_of_events(events: list[StreamEvent], *, head: StreamHead, after: Position, limit: int) -> StreamPage:
    """The events that directly follow a position: all there are up to the head, or `limit` of them."""
    number = events[-1].number if len(events) >= limit else max(after.number, head.number)
    return StreamPage(
        events=tuple(events), position=Position(epoch=head.epoch, number=number), more=number < head.number
    )
