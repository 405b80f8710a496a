"""A gate and the feed of what goes through it, over a real database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path

from tests.support.gate_world import GateWorld

from contextbase.db.database import Database
from contextbase.feed.model import Cursor, FeedCommit, FeedEvent, FeedItem, FeedPage, Scope
from contextbase.feed.notifier import Notifier
from contextbase.feed.repository import FeedRepository
from contextbase.feed.service import FeedService
from contextbase.identity.model import Caller
from contextbase.ids import TreePath

__all__ = ["FeedWorld", "at", "feed_on", "seqs_of", "shown"]


@dataclass
class FeedWorld:
    gate: GateWorld
    feed: FeedService
    notifier: Notifier
    repository: FeedRepository = field(default_factory=FeedRepository)

    @classmethod
    @asynccontextmanager
    async def opened(cls, database: Database, folder: Path, *, hints: bool = True) -> AsyncIterator["FeedWorld"]:
        """Without `hints` the gate tells nobody: as if every NOTIFY were lost."""
        async with feed_on(database) as (feed, notifier):
            gate = await GateWorld.start(database, folder, **({"hint": notifier.hint} if hints else {}))
            yield cls(gate=gate, feed=feed, notifier=notifier)

    async def scope(self, who: Caller | None = None, below: str | None = None) -> Scope:
        async with self.gate.database.connection() as connection:
            authority = await self.gate.gate.authority(connection, who or self.gate.owner, self.gate.project.id)
        return Scope(authority=authority, below=TreePath(below) if below else None)

    async def read(
        self, who: Caller | None = None, *, after: str | None = "start", limit: int = 100, below: str | None = None
    ) -> FeedPage:
        heads = await self.feed.heads(self.gate.project.id)
        return await self.feed.read(await self.scope(who, below), heads, self.feed.cursor(heads, after), limit=limit)

    async def follow(self, last: int, feed: FeedService | None = None) -> "asyncio.Task[list[FeedItem]]":
        """A reader that follows by now; its task returns what it got, up to the commit `last`."""
        following = asyncio.Event()
        task = asyncio.create_task(self._follow(last, feed or self.feed, following))
        task.add_done_callback(lambda _: following.set())
        await following.wait()
        return task

    async def _follow(self, last: int, feed: FeedService, following: asyncio.Event) -> list[FeedItem]:
        heads = await feed.heads(self.gate.project.id)
        scope, cursor, items = await self.scope(), heads.cursor, []
        async with asyncio.timeout(60), feed.follow(heads) as follower:
            while follower.policy_version == 0:
                await follower.wait(cursor, 60)
            following.set()
            while cursor.seq < last:
                page = await follower.read(scope, cursor)
                cursor = page.cursor
                items += page.items
                if cursor.seq < last:
                    await follower.wait(cursor, 60)
        return items

    async def renew_epoch(self) -> None:
        """As a restore does."""
        async with self.gate.database.transaction() as connection:
            await connection.execute(
                "UPDATE projects SET epoch = gen_random_uuid() WHERE id = $1", self.gate.project.id
            )


@asynccontextmanager
async def feed_on(
    database: Database, repository: FeedRepository | None = None
) -> AsyncIterator[tuple[FeedService, Notifier]]:
    """The feed as one server process has it."""
    notifier = Notifier(database)
    feed = FeedService(
        database=database,
        repository=repository or FeedRepository(),
        notifier=notifier,
        retention=timedelta(days=7),
    )
    try:
        yield feed, notifier
    finally:
        feed.end()
        await notifier.close()


def shown(page: FeedPage) -> list[tuple[str, ...]]:
    """Each change as (action, path[, previous path]); each event as (kind, path)."""
    lines: list[tuple[str, ...]] = []
    for item in page.items:
        if isinstance(item.body, FeedEvent):
            lines.append((item.body.kind, *([item.body.path] if item.body.path else [])))
            continue
        lines += [
            (change.action, change.path, *([change.previous_path] if change.previous_path else []))
            for change in item.body.changes
        ]
    return lines


def seqs_of(items: list[FeedItem] | tuple[FeedItem, ...]) -> list[int]:
    return [item.body.seq for item in items if isinstance(item.body, FeedCommit)]


def at(cursor: Cursor) -> tuple[int, int]:
    return cursor.seq, cursor.event
