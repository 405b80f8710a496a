"""Events of several scopes over one connection, as a part of the clients: `client.events`."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from typing import Any, Final

import httpx
from pydantic import TypeAdapter, ValidationError

from contextbase.errors import Unavailable
from contextbase.sdk.arguments import checked, documented_like
from contextbase.sdk.connection import Connection
from contextbase.sdk.lines import lines_of_async
from contextbase.sdk.portal import Portal
from contextbase.wire.event import ScopedItemView, ScopedPageView

__all__ = ["AsyncEvents", "Events", "ReceivedEvent"]

_EVENTS: Final = "/api/v1/events"
_ITEM: Final[TypeAdapter[ScopedItemView]] = TypeAdapter(ScopedItemView)
_SILENCE_SECONDS: Final = 45.0  # three heartbeats
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ReceivedEvent:
    cursor: str  # where to go on after this item, in all scopes
    item: ScopedItemView


class AsyncEvents:
    """A scope is `project:NAME`, `user:me` (notices to you), `system` (for admins) or `session:ID`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    async def list(
        self, scopes: Sequence[str], *, after: str | None = None, limit: int = 100, wait: float = 0.0
    ) -> ScopedPageView:
        """What comes after a cursor; 'start' is the beginning, None is now. With `wait`, not before there is something
        or the time is over."""
        query: dict[str, Any] = {"scope": [*scopes], "after": after, "limit": limit, "wait": wait}
        return await self._connection.retried(
            lambda: self._connection.call(ScopedPageView, "GET", _EVENTS, read_seconds=wait + 30, **query)
        )

    @checked
    async def follow(self, scopes: Sequence[str], *, after: str | None = None) -> AsyncGenerator[ReceivedEvent, None]:
        """Every item once, in order within its scope, for as long as the caller likes. Only a server that cannot be
        reached at first, or refuses, raises; a connection that is lost later is made again. Close it if you stop early
        (`contextlib.aclosing`)."""
        cursor, reached, pause = after, False, _FIRST_PAUSE_SECONDS
        while True:
            try:
                async with aclosing(self._stream(scopes, cursor)) as stream:
                    async for at, item in stream:
                        reached, pause = True, _FIRST_PAUSE_SECONDS
                        if item is not None:
                            yield ReceivedEvent(cursor=at, item=item)
                        cursor = at
            except Unavailable:
                if not reached:
                    raise
            await asyncio.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    @checked
    async def body(self, scope: str, number: int) -> AsyncGenerator[bytes, None]:
        """The whole payload, as JSON in pieces, of an event whose `body` is set."""
        async with self._connection.stream(f"{_EVENTS}/body", scope=scope, number=number) as response:
            async for piece in response.aiter_raw():
                yield piece

    async def _stream(
        self, scopes: Sequence[str], after: str | None
    ) -> AsyncGenerator[tuple[str, ScopedItemView | None], None]:
        """One connection's cursors, each with the item it comes after; None for a sign of life without one."""
        query: dict[str, Any] = {"scope": [*scopes], "after": after}
        headers = {"Accept": "text/event-stream"}
        async with self._connection.stream(
            _EVENTS, headers=headers, read_seconds=_SILENCE_SECONDS, **query
        ) as response:
            async for found in _items(response, after or ""):
                yield found


@documented_like(AsyncEvents)
class Events:
    """`AsyncEvents` for code that is not async."""

    def __init__(self, events: AsyncEvents, portal: Portal) -> None:
        self._events = events
        self._portal = portal

    def list(
        self, scopes: Sequence[str], *, after: str | None = None, limit: int = 100, wait: float = 0.0
    ) -> ScopedPageView:
        return self._portal.run(self._events.list(scopes, after=after, limit=limit, wait=wait))

    def follow(self, scopes: Sequence[str], *, after: str | None = None) -> Iterator[ReceivedEvent]:
        return self._portal.iterate(self._events.follow(scopes, after=after))

    def body(self, scope: str, number: int) -> Iterator[bytes]:
        return self._portal.iterate(self._events.body(scope, number))


async def _items(response: httpx.Response, cursor: str) -> AsyncIterator[tuple[str, ScopedItemView | None]]:
    data = ""
    async for line in lines_of_async(response):
        name, _, value = line.partition(": ")
        if name == "id":
            cursor = value
        elif name == "data":
            data = value
        elif not line:
            try:
                item = _ITEM.validate_json(data) if data else None
            except ValidationError as error:
                raise Unavailable("The stream has an item that is not contextbase's; is the server as new?") from error
            yield cursor, item
            data = ""
