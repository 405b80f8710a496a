"""A project's newest commits and events, read once per process and shared by all who follow it there."""

from collections.abc import Hashable, Sequence
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import CursorOutdated
from contextbase.ids import ProjectId
from contextbase.streams.feed_model import Cursor, FeedCommit, FeedHeads, FeedPage, FileChangeKind, Viewpoint
from contextbase.streams.feed_pages import page_of
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import Scope, StreamEvent
from contextbase.streams.notifier import Notifier
from contextbase.streams.tail import Tail
from contextbase.streams.window import Window

__all__ = ["FeedWindow"]

_AT_ONCE: Final = 200
_MOST_KEPT: Final = 1000
_MOST_CHANGES_KEPT: Final = 20_000
_MOST_PAGES: Final = 200


class FeedWindow(Window):
    def __init__(self, *, scope: Scope, database: Database, repository: FeedRepository, notifier: Notifier) -> None:
        super().__init__(scope=scope, notifier=notifier)
        self._database = database
        self._repository = repository
        self._heads: FeedHeads | None = None
        self._commits: Tail[FeedCommit] = Tail(0)
        self._events: Tail[StreamEvent] = Tail(0)
        # Readers who see the same stand at the same place most of the time: they share what they are shown.
        self._pages: dict[Hashable, FeedPage] = {}

    @property
    def heads(self) -> FeedHeads | None:
        """How far it can be read; None before anything can."""
        return self._heads

    def page(self, viewpoint: Viewpoint, after: Cursor, limit: int) -> FeedPage | None:
        """What follows a cursor, from memory; None when the cursor lies before what is kept."""
        if self._gone is not None:
            raise self._gone
        heads = self._heads
        if heads is None:
            return FeedPage(items=(), cursor=after, more=False)
        if after.epoch != heads.epoch:
            raise CursorOutdated("The project was restored; its feed starts over.")
        if after.seq < self._commits.after or after.event < self._events.after:
            return None
        key = (viewpoint.authority.sight, viewpoint.below, after, limit)
        if (page := self._pages.get(key)) is None:
            page = page_of(
                self._commits.since(after.seq, limit),
                self._events.since(after.event, limit),
                viewpoint=viewpoint,
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

    async def _advance(self) -> bool:
        async with self._database.connection() as connection:
            found = await self._repository.heads(connection, ProjectId(self._scope.id))
            known = self._heads
            if known is None or known.epoch != found.epoch:
                self._commits, self._events = Tail(found.seq), Tail(found.event)
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

    def _take(self, commits: Sequence[FeedCommit], events: Sequence[StreamEvent]) -> None:
        for commit in commits:
            if any(change.action is FileChangeKind.RENAMED for change in commit.changes):
                # Who may see the older changes of a node depends on where it is now: they must be read again.
                self._commits = Tail(commit.seq - 1)
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


def _cut(found: FeedHeads, known: FeedHeads, commits: Sequence[FeedCommit], events: Sequence[StreamEvent]) -> FeedHeads:
    """The heads up to what has been read so far."""
    seq = commits[-1].seq if len(commits) == _AT_ONCE else found.seq
    event = events[-1].number if len(events) == _AT_ONCE else found.event
    return FeedHeads(
        project_id=found.project_id, epoch=known.epoch, seq=seq, event=event, policy_version=found.policy_version
    )
