"""One caller's reading of one scope among several, authorised again every few seconds."""

import asyncio
import re
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from typing import Final, Protocol

from fastapi import Request

from contextbase.bootstrap import CoreServices
from contextbase.errors import DatabaseUnavailable
from contextbase.identity.model import Caller
from contextbase.interfaces.api.authentication import authenticate
from contextbase.interfaces.api.feed_reader import FeedConnection
from contextbase.interfaces.api.watched_caller import CHECKED_SECONDS
from contextbase.streams.access import ReadableScope
from contextbase.streams.feed_model import Cursor, FeedCommit, FeedHeads
from contextbase.streams.model import Position, Scope, StreamEvent
from contextbase.streams.project_feed import FeedFollower
from contextbase.streams.service import EventFollower

__all__ = ["FoundEvents", "ScopeReader", "private_scope", "project_of", "scope_readers"]

_PROJECT: Final = re.compile(r"project:(.+)")


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundEvents:
    items: Sequence[tuple[object, FeedCommit | StreamEvent]]  # each with the cursor after it
    more: bool = False  # whether there is more already


class ScopeReader(Protocol):
    """Start it, then read and wait in turns. `cursor` moves on with what is read."""

    name: str  # as the caller wrote it

    @property
    def cursor(self) -> object: ...

    @property
    def ended(self) -> bool: ...

    @property
    def is_behind(self) -> bool:
        """Whether there is something to read."""
        ...

    async def start(self, after: str | None) -> None: ...

    async def read_now(self, limit: int) -> FoundEvents:
        """What is there already, from the database itself."""
        ...

    def following(self, wake: Callable[[], None]) -> AbstractAsyncContextManager[None]:
        """`read` works while the block lasts; `wake` is called when there may be something new."""
        ...

    async def read(self, limit: int) -> FoundEvents: ...


async def scope_readers(
    request: Request, services: CoreServices, caller: Caller, names: Sequence[str]
) -> "list[ScopeReader]":
    """Raises `NotFound` for a project that the caller may not read; other scopes are looked at when they are read."""
    readers: list[ScopeReader] = []
    for name in dict.fromkeys(names):
        if (project := project_of(name)) is not None:
            project_id = await services.projects.id_of(caller, project)
            readers.append(_ProjectReader(name, FeedConnection(request, services, project_id, None)))
        else:
            readers.append(_PrivateReader(name, request, services, private_scope(caller, name)))
    return readers


def project_of(name: str) -> str | None:
    """The name or id of the project that a scope is about."""
    match = _PROJECT.fullmatch(name)
    return match[1] if match else None


def private_scope(caller: Caller, name: str) -> Scope:
    return Scope.user(caller.principal.id) if name == "user:me" else Scope.parse(name)


class _ProjectReader:
    def __init__(self, name: str, reader: FeedConnection) -> None:
        self.name = name
        self._reader = reader
        self._heads: FeedHeads
        self._follower: FeedFollower  # while it is followed
        self.cursor: Cursor

    @property
    def ended(self) -> bool:
        return self._follower.ended

    @property
    def is_behind(self) -> bool:
        return self._follower.is_past(self.cursor)

    async def start(self, after: str | None) -> None:
        self._heads, self.cursor = await self._reader.start(after)

    async def read_now(self, limit: int) -> FoundEvents:
        page = await self._reader.read_now(self._heads, self.cursor, limit)
        self.cursor = page.cursor
        return FoundEvents(items=[(item.cursor, item.body) for item in page.items], more=page.more)

    @asynccontextmanager
    async def following(self, wake: Callable[[], None]) -> AsyncIterator[None]:
        async with self._reader.following(self._heads) as self._follower:
            with self._follower.waking(wake):
                yield

    async def read(self, limit: int) -> FoundEvents:
        page = await self._reader.read(self._follower, self.cursor, limit)
        self.cursor = page.cursor
        return FoundEvents(items=[(item.cursor, item.body) for item in page.items], more=page.more)


class _PrivateReader:
    def __init__(self, name: str, request: Request, services: CoreServices, scope: Scope) -> None:
        self.name = name
        self._clock = asyncio.get_running_loop()
        self._request = request
        self._services = services
        self._scope = scope
        self._readable: ReadableScope
        self._authorised_at = 0.0
        self._follower: EventFollower  # while it is followed
        self.cursor: Position

    @property
    def ended(self) -> bool:
        return self._follower.ended

    @property
    def is_behind(self) -> bool:
        return self._follower.is_past(self.cursor)

    async def start(self, after: str | None) -> None:
        await self._authorise()
        head = await self._services.streams.head(self._readable)
        self.cursor = self._services.streams.position(head, after)

    async def read_now(self, limit: int) -> FoundEvents:
        page = await self._services.streams.read(self._readable, self.cursor, limit=limit)
        self.cursor = page.position
        return _found(page.events, page.position, more=page.more)

    @asynccontextmanager
    async def following(self, wake: Callable[[], None]) -> AsyncIterator[None]:
        async with self._services.streams.follow(self._readable) as self._follower:
            with self._follower.waking(wake):
                yield

    async def read(self, limit: int) -> FoundEvents:
        if self._clock.time() - self._authorised_at > CHECKED_SECONDS:
            try:
                await self._authorise()
            except DatabaseUnavailable:
                return FoundEvents(items=())  # asked again when it answers
        page = await self._follower.read(self.cursor, limit=limit)
        self.cursor = page.position
        return _found(page.events, page.position, more=page.more)

    async def _authorise(self) -> None:
        """Raises when the caller may not read it, or not any more."""
        caller = await authenticate(self._request)
        self._readable = await self._services.scope_access.readable(caller, self._scope)
        self._authorised_at = self._clock.time()


def _found(events: Sequence[StreamEvent], position: Position, *, more: bool) -> FoundEvents:
    return FoundEvents(
        items=[(Position(epoch=position.epoch, number=event.number), event) for event in events], more=more
    )
