"""The feed as its readers and publishers know it: read, follow, publish, prune."""

import asyncio
import json
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import ContextbaseError, CursorOutdated, InvalidInput, TooLarge
from contextbase.feed.model import Cursor, FeedHeads, FeedItem, FeedPage, NewEvent, Scope
from contextbase.feed.notifier import Notifier
from contextbase.feed.paging import page_of
from contextbase.feed.repository import FeedRepository
from contextbase.feed.window import TICK_SECONDS, Window
from contextbase.ids import ProjectId, Seq

__all__ = ["FeedService", "Follower"]

_log = logging.getLogger(__name__)

START: Final = "start"
_MOST_PAYLOAD_BYTES: Final = 16 * 1024
_BETWEEN_PRUNINGS_SECONDS: Final = 3600.0
_AT_ONCE: Final = 200
_MOST_READINGS: Final = 25  # of _AT_ONCE commits, to fill one page past what is hidden


@dataclass(slots=True)
class _Followed:
    window: Window
    task: "asyncio.Task[None]"
    followers: int = 0


class FeedService:
    """Reading takes a scope, made from the caller's authority. Load that authority after the heads: then nothing that
    landed under a stricter policy is filtered by an older one."""

    def __init__(
        self, *, database: Database, repository: FeedRepository, notifier: Notifier, retention: timedelta
    ) -> None:
        self._database = database
        self._repository = repository
        self._notifier = notifier
        self._retention = retention
        self._followed: dict[ProjectId, _Followed] = {}
        self._ended = False

    async def heads(self, project_id: ProjectId) -> FeedHeads:
        async with self._database.connection() as connection:
            return await self._repository.heads(connection, project_id)

    def cursor(self, heads: FeedHeads, text: str | None) -> Cursor:
        """Where a reader wants to start: nothing means now, 'start' the first commit, else a cursor it was given.

        Raises `CursorOutdated` for one from before a restore, or of a future that this history does not have.
        """
        if text is None:
            return heads.cursor
        if text == START:
            return Cursor(epoch=heads.epoch, seq=Seq(0), event=0)
        cursor = Cursor.parse(text, event=heads.event)
        if cursor.epoch != heads.epoch or cursor.seq > heads.seq or cursor.event > heads.event:
            raise CursorOutdated(
                "The cursor is from before the project was restored; check the project out anew and go on from there.",
                cursor=str(heads.cursor),
            )
        return cursor

    async def read(self, scope: Scope, heads: FeedHeads, after: Cursor, *, limit: int = 100) -> FeedPage:
        """What follows a cursor, up to the heads, straight from the database."""
        items: list[FeedItem] = []
        page = FeedPage(items=(), cursor=after, more=True)
        async with self._database.connection() as connection:
            for _ in range(_MOST_READINGS):
                wanted = limit - len(items)
                at_once = max(wanted, _AT_ONCE)
                commits = await self._repository.commits(connection, heads, page.cursor.seq, at_once)
                events = await self._repository.events(connection, heads, page.cursor.event, at_once)
                page = page_of(commits, events, scope=scope, heads=heads, after=page.cursor, limit=wanted)
                items += page.items
                if len(items) == limit or not page.more:
                    break
        return FeedPage(items=tuple(items), cursor=page.cursor, more=page.more)

    @asynccontextmanager
    async def follow(self, heads: FeedHeads) -> "AsyncIterator[Follower]":
        """Share the process's window on a project while the block lasts."""
        project_id = heads.project_id
        followed = self._followed.get(project_id)
        if followed is None:
            window = Window(
                project_id=project_id,
                database=self._database,
                repository=self._repository,
                notifier=self._notifier,
            )
            followed = _Followed(window, asyncio.create_task(window.run(), name=f"feed-{project_id}"))
            self._followed[project_id] = followed
        followed.followers += 1
        try:
            yield Follower(self, followed.window)
        finally:
            followed.followers -= 1
            if followed.followers == 0:
                del self._followed[project_id]
                followed.task.cancel()
                with suppress(asyncio.CancelledError):
                    await followed.task

    @property
    def ended(self) -> bool:
        return self._ended

    def end(self) -> None:
        """Send every follower home: the server stops."""
        self._ended = True
        for followed in self._followed.values():
            followed.window.wake()

    async def publish(self, project_id: ProjectId, event: NewEvent) -> int:
        """Store an event in a transaction of its own and wake its readers; returns its number.

        An event that belongs to another change is stored in that change's transaction: `FeedRepository.append_events`.
        """
        if not event.kind or len(event.kind) > 100:
            raise InvalidInput("An event's kind has 1 to 100 characters.")
        if len(json.dumps(event.payload)) > _MOST_PAYLOAD_BYTES:
            raise TooLarge(f"An event's payload has at most {_MOST_PAYLOAD_BYTES} bytes of JSON.")
        async with self._database.transaction() as connection:
            [number] = await self._repository.append_events(connection, project_id, [event])
        self._notifier.hint(project_id)
        return number

    async def keep_pruned(self) -> None:
        """Prune now and every hour, until cancelled."""
        while True:
            try:
                await self.prune()
            except ContextbaseError as error:
                _log.warning("old events were not removed; trying again in an hour", extra={"code": error.code})
            await asyncio.sleep(_BETWEEN_PRUNINGS_SECONDS)

    async def prune(self) -> int:
        """Remove events that are older than the retention; returns how many. Commits stay for good."""
        async with self._database.connection() as connection:
            return await self._repository.prune(connection, self._retention)


class Follower:
    """One reader's view of a shared window. Reading what is new takes no database at all."""

    def __init__(self, service: FeedService, window: Window) -> None:
        self._service = service
        self._window = window

    @property
    def policy_version(self) -> int:
        """What is read next is to be filtered by an authority of this version, or a newer one."""
        return 0 if self._window.heads is None else self._window.heads.policy_version

    @property
    def ended(self) -> bool:
        return self._service.ended

    async def read(self, scope: Scope, after: Cursor, *, limit: int = 100) -> FeedPage:
        """Raises `CursorOutdated` once the project was restored, `NotFound` once it was deleted."""
        heads = self._window.heads
        page = self._window.page(scope, after, limit)
        if page is None and heads is not None:
            return await self._service.read(scope, heads, after, limit=limit)
        return page or FeedPage(items=(), cursor=after, more=False)

    async def wait(self, after: Cursor, seconds: float) -> None:
        """Until there may be something new after a cursor, the server stops or the time is over; at most about a
        second, so look at the clock and wait again."""
        if self.ended or seconds <= 0 or self._window.is_past(after):
            return
        if seconds >= TICK_SECONDS:
            await self._window.moved()
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._window.moved()
