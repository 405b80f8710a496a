"""A project's newest commits and events, read once per process and shared by all who follow it there."""

import asyncio
import logging
from bisect import bisect_right
from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Final, Generic, TypeVar

from contextbase.db.database import Database
from contextbase.errors import ContextbaseError, CursorOutdated, NotFound
from contextbase.feed.model import ChangeKind, Cursor, FeedCommit, FeedEvent, FeedHeads, FeedPage, Scope
from contextbase.feed.notifier import Notifier
from contextbase.feed.paging import page_of
from contextbase.feed.repository import FeedRepository
from contextbase.ids import ProjectId

__all__ = ["TICK_SECONDS", "Window"]

_log = logging.getLogger(__name__)

POLL_SECONDS: Final = 1.0
TICK_SECONDS: Final = 1.0
_AT_ONCE: Final = 200
_MOST_KEPT: Final = 1000
_MOST_CHANGES_KEPT: Final = 20_000
_MOST_PAGES: Final = 200

Entry = TypeVar("Entry", FeedCommit, FeedEvent)


class _Tail(Generic[Entry]):
    """All entries after a position, in order; the oldest are let go when there are many."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.entries: list[Entry] = []

    def since(self, position: int, limit: int) -> list[Entry]:
        if not self.entries or self.entries[-1].position <= position:
            return []
        start = bisect_right(self.entries, position, key=_position)
        return self.entries[start : start + limit]

    def drop_first(self, count: int) -> None:
        if count > 0:
            self.after = self.entries[count - 1].position
            del self.entries[:count]


class Window:
    """Follows the heads while `run` runs: at every hint, and every second without one."""

    def __init__(
        self, *, project_id: ProjectId, database: Database, repository: FeedRepository, notifier: Notifier
    ) -> None:
        self._project_id = project_id
        self._database = database
        self._repository = repository
        self._notifier = notifier
        self._hinted = asyncio.Event()
        self._moved = asyncio.Event()
        self._tick = asyncio.get_running_loop().call_later(TICK_SECONDS, self.wake)
        self._heads: FeedHeads | None = None
        self._gone: NotFound | None = None
        self._commits: _Tail[FeedCommit] = _Tail(0)
        self._events: _Tail[FeedEvent] = _Tail(0)
        # Readers who see the same stand at the same place most of the time: they share what they are shown.
        self._pages: dict[Hashable, FeedPage] = {}

    @property
    def heads(self) -> FeedHeads | None:
        """How far it can be read; None before anything can."""
        return self._heads

    def page(self, scope: Scope, after: Cursor, limit: int) -> FeedPage | None:
        """What follows a cursor, from memory; None when the cursor lies before what is kept."""
        if self._gone is not None:
            raise self._gone
        heads = self._heads
        if heads is None:
            return FeedPage(items=(), cursor=after, more=False)
        if after.epoch != heads.epoch:
            raise CursorOutdated("The project was restored; its feed starts anew.")
        if after.seq < self._commits.after or after.event < self._events.after:
            return None
        key = (scope.authority.sight, scope.below, after, limit)
        if (page := self._pages.get(key)) is None:
            page = page_of(
                self._commits.since(after.seq, limit),
                self._events.since(after.event, limit),
                scope=scope,
                heads=heads,
                after=after,
                limit=limit,
            )
            if len(self._pages) < _MOST_PAGES:  # a reader chooses its path and limit: it must not fill the memory
                self._pages[key] = page
        return page

    def is_past(self, cursor: Cursor) -> bool:
        """Whether there is something to read, or to be told, after a cursor."""
        heads = self._heads
        if heads is None:
            return self._gone is not None
        return heads.seq > cursor.seq or heads.event > cursor.event or heads.epoch != cursor.epoch or bool(self._gone)

    async def moved(self) -> None:
        """Return at the next change of the heads, when the window is woken, and at least every `TICK_SECONDS`."""
        await self._moved.wait()

    def wake(self) -> None:
        moved, self._moved = self._moved, asyncio.Event()
        moved.set()
        # One timer for all readers is much cheaper than one for each wait of each of them.
        self._tick.cancel()
        if self._gone is None:
            self._tick = asyncio.get_running_loop().call_later(TICK_SECONDS, self.wake)

    async def run(self) -> None:
        try:
            await self._follow_heads()
        finally:
            self._tick.cancel()

    async def _follow_heads(self) -> None:
        with self._notifier.subscribed(self._project_id, self._hinted.set):
            while self._gone is None:
                self._hinted.clear()
                try:
                    while await self._advance():
                        pass
                except NotFound as error:
                    self._gone = error
                    self.wake()
                except ContextbaseError as error:
                    _log.warning("the feed cannot be read now; trying again", extra={"code": error.code})
                except Exception:  # noqa: BLE001 - followers wait for this task: it must not end
                    _log.exception("the feed could not be read; trying again")
                with suppress(TimeoutError):
                    async with asyncio.timeout(POLL_SECONDS):
                        await self._hinted.wait()

    async def _advance(self) -> bool:
        """Take in what is new; True when there is more of it."""
        async with self._database.connection() as connection:
            found = await self._repository.heads(connection, self._project_id)
            known = self._heads
            if known is None or known.epoch != found.epoch:
                self._commits, self._events = _Tail(found.seq), _Tail(found.event)
                self._move(found)
                return False
            if found == known:
                return False
            commits = await self._repository.commits(connection, found, known.seq, _AT_ONCE)
            events = await self._repository.events(connection, found, known.event, _AT_ONCE)
        whole = len(commits) < _AT_ONCE and len(events) < _AT_ONCE
        if not whole:
            found = _cut(found, known, commits, events)
        self._take(commits, events)
        self._move(found)
        return not whole

    def _take(self, commits: Sequence[FeedCommit], events: Sequence[FeedEvent]) -> None:
        for commit in commits:
            if any(change.action is ChangeKind.RENAMED for change in commit.changes):
                # Who may see the older changes of a node depends on where it is now: they must be read anew.
                self._commits = _Tail(commit.seq - 1)
            self._commits.entries.append(commit)
        self._events.entries.extend(events)
        self._commits.drop_first(_surplus(self._commits.entries))
        self._events.drop_first(len(self._events.entries) - _MOST_KEPT)

    def _move(self, heads: FeedHeads) -> None:
        self._heads = heads
        self._pages.clear()
        self.wake()


def _surplus(commits: Sequence[FeedCommit]) -> int:
    """How many of the oldest to let go; the newest always stays, for those who wait for it."""
    kept = changes = 0
    for commit in reversed(commits):
        changes += len(commit.changes) + len(commit.set_aside)
        if kept and (kept == _MOST_KEPT or changes > _MOST_CHANGES_KEPT):
            break
        kept += 1
    return len(commits) - kept


def _cut(found: FeedHeads, known: FeedHeads, commits: Sequence[FeedCommit], events: Sequence[FeedEvent]) -> FeedHeads:
    """The heads up to what has been read so far."""
    seq = commits[-1].seq if len(commits) == _AT_ONCE else found.seq
    event = events[-1].number if len(events) == _AT_ONCE else found.event
    return FeedHeads(
        project_id=found.project_id, epoch=known.epoch, seq=seq, event=event, policy_version=found.policy_version
    )


def _position(entry: FeedCommit | FeedEvent) -> int:
    return entry.position
