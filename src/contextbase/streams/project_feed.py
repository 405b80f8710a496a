"""A project's feed: its commits and its stream of events, merged, of each what the reader may see."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager, suppress
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import CursorOutdated, NotFound
from contextbase.ids import ProjectId, Seq
from contextbase.streams.bodies import BodyContent, EventBodies
from contextbase.streams.feed_model import Cursor, FeedHeads, FeedItem, FeedPage, Viewpoint
from contextbase.streams.feed_pages import page_of
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.feed_window import FeedWindow
from contextbase.streams.model import START, Scope
from contextbase.streams.notifier import Notifier
from contextbase.streams.repository import StreamRepository
from contextbase.streams.window import TICK_SECONDS, SharedWindows, WindowOwner

__all__ = ["FeedFollower", "ProjectFeed"]

_AT_ONCE: Final = 200
_MOST_READINGS: Final = 25  # of _AT_ONCE commits, to fill one page past what is hidden


class ProjectFeed(WindowOwner[FeedWindow]):
    """Reading takes a viewpoint, made from the caller's authority. Load that authority after the heads: then nothing
    that landed under a stricter policy is filtered by an older one."""

    def __init__(
        self, *, database: Database, repository: FeedRepository, bodies: EventBodies, notifier: Notifier
    ) -> None:
        self._database = database
        self._repository = repository
        self._bodies = bodies
        self._windows = SharedWindows(
            lambda scope: FeedWindow(scope=scope, database=database, repository=repository, notifier=notifier)
        )

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
                "The cursor is from before the project was restored; check it out again and continue from there.",
                cursor=str(heads.cursor),
            )
        return cursor

    async def read(self, viewpoint: Viewpoint, heads: FeedHeads, after: Cursor, *, limit: int = 100) -> FeedPage:
        """What follows a cursor, up to the heads, straight from the database."""
        items: list[FeedItem] = []
        page = FeedPage(items=(), cursor=after, more=True)
        async with self._database.connection() as connection:
            for _ in range(_MOST_READINGS):
                wanted = limit - len(items)
                at_once = max(wanted, _AT_ONCE)
                commits = await self._repository.commits(connection, heads, page.cursor.seq, at_once)
                events = await self._repository.events(connection, heads, page.cursor.event, at_once)
                page = page_of(commits, events, viewpoint=viewpoint, heads=heads, after=page.cursor, limit=wanted)
                items += page.items
                if len(items) == limit or not page.more:
                    break
        return FeedPage(items=tuple(items), cursor=page.cursor, more=page.more)

    async def body(self, viewpoint: Viewpoint, project_id: ProjectId, number: int) -> BodyContent:
        """The whole payload of an event that has a preview of it; raises `NotFound` for any other, and for one that
        cannot be seen."""
        async with self._database.connection() as connection:
            event = await StreamRepository().event(connection, Scope.project(project_id), number)
        if event is None or event.body is None or not viewpoint.shows(event):
            raise NotFound(f"The event {number} of the project has no body of its own, or was removed.")
        return self._bodies.content(event.body)

    @asynccontextmanager
    async def follow(self, heads: FeedHeads) -> "AsyncIterator[FeedFollower]":
        """Share the process's window on a project while the block lasts."""
        async with self._windows.opened(Scope.project(heads.project_id)) as window:
            yield FeedFollower(self, window)


class FeedFollower:
    """One reader's view of a shared window. Reading what is new takes no database at all."""

    def __init__(self, feed: ProjectFeed, window: FeedWindow) -> None:
        self._feed = feed
        self._window = window

    @property
    def policy_version(self) -> int:
        """What is read next is to be filtered by an authority of this version, or a newer one."""
        return 0 if self._window.heads is None else self._window.heads.policy_version

    @property
    def ended(self) -> bool:
        return self._feed.ended

    def is_past(self, cursor: Cursor) -> bool:
        """Whether there is something to read after a cursor."""
        return self._window.is_past(cursor)

    def waking(self, callback: Callable[[], None]) -> AbstractContextManager[None]:
        """Call back when there may be something new, and about every second, while the block lasts."""
        return self._window.waking(callback)

    async def read(self, viewpoint: Viewpoint, after: Cursor, *, limit: int = 100) -> FeedPage:
        """Raises `CursorOutdated` once the project was restored, `NotFound` once it was deleted."""
        heads = self._window.heads
        page = self._window.page(viewpoint, after, limit)
        if page is None and heads is not None:
            return await self._feed.read(viewpoint, heads, after, limit=limit)
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
