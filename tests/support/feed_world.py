"""A gate, the feed of what goes through it, and streams of other scopes, over a real database."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from tests.support.gate_world import GateWorld

from contextbase.db.database import Database
from contextbase.identity.model import Caller
from contextbase.ids import TreePath
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.streams.bodies import EventBodies
from contextbase.streams.feed_model import Cursor, FeedCommit, FeedItem, FeedPage, Viewpoint
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import NewEvent, Scope, ScopeKind, StreamEvent
from contextbase.streams.notifier import Notifier
from contextbase.streams.project_feed import ProjectFeed
from contextbase.streams.repository import StreamRepository
from contextbase.streams.service import StreamService

__all__ = ["RETENTION", "FeedWorld", "ServerSide", "at", "seqs_of", "server_side", "shown"]

RETENTION = {
    ScopeKind.PROJECT: timedelta(days=7),
    ScopeKind.USER: timedelta(days=30),
    ScopeKind.SYSTEM: timedelta(days=90),
}


@dataclass(frozen=True)
class ServerSide:
    """Feed and streams as one server process has them."""

    feed: ProjectFeed
    streams: StreamService
    notifier: Notifier


@dataclass
class FeedWorld:
    gate: GateWorld
    feed: ProjectFeed
    streams: StreamService
    notifier: Notifier
    folder: Path

    @classmethod
    @asynccontextmanager
    async def opened(cls, database: Database, folder: Path, *, hints: bool = True) -> AsyncIterator["FeedWorld"]:
        """Without `hints` the gate tells nobody: as if every NOTIFY were lost."""
        async with server_side(database, folder) as side:
            hint = {"hint": side.notifier.hint_project} if hints else {}
            gate = await GateWorld.start(database, folder, **hint)
            yield cls(gate=gate, feed=side.feed, streams=side.streams, notifier=side.notifier, folder=folder)

    def another_server(self, repository: FeedRepository | None = None) -> AbstractAsyncContextManager[ServerSide]:
        """Feed and streams of another process on the same database."""
        return server_side(self.gate.database, self.folder, repository)

    async def publish(self, event: NewEvent) -> int:
        """As an event of the project."""
        [number] = await self.streams.publish(Scope.project(self.gate.project.id), event)
        return number

    async def viewpoint(self, who: Caller | None = None, below: str | None = None) -> Viewpoint:
        async with self.gate.database.connection() as connection:
            authority = await self.gate.gate.authority(connection, who or self.gate.owner, self.gate.project.id)
        return Viewpoint(authority=authority, below=TreePath(below) if below else None)

    async def read(
        self, who: Caller | None = None, *, after: str | None = "start", limit: int = 100, below: str | None = None
    ) -> FeedPage:
        heads = await self.feed.heads(self.gate.project.id)
        return await self.feed.read(
            await self.viewpoint(who, below), heads, self.feed.cursor(heads, after), limit=limit
        )

    async def follow(self, last: int, feed: ProjectFeed | None = None) -> "asyncio.Task[list[FeedItem]]":
        """A reader that follows by now; its task returns what it got, up to the commit `last`."""
        following = asyncio.Event()
        task = asyncio.create_task(self._follow(last, feed or self.feed, following))
        task.add_done_callback(lambda _: following.set())
        await following.wait()
        return task

    async def _follow(self, last: int, feed: ProjectFeed, following: asyncio.Event) -> list[FeedItem]:
        heads = await feed.heads(self.gate.project.id)
        viewpoint, cursor, items = await self.viewpoint(), heads.cursor, []
        async with asyncio.timeout(60), feed.follow(heads) as follower:
            while follower.policy_version == 0:
                await follower.wait(cursor, 60)
            following.set()
            while cursor.seq < last:
                page = await follower.read(viewpoint, cursor)
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
async def server_side(
    database: Database, folder: Path, repository: FeedRepository | None = None
) -> AsyncIterator[ServerSide]:
    notifier = Notifier(database)
    bodies = EventBodies(
        BlobCatalog(
            database=database,
            small=InlineBlobStore(database),
            large=LocalBlobStore(folder / "blobs"),
            limit=262_144,
            spool=SpoolFolder(folder / "spool"),
        )
    )
    feed = ProjectFeed(database=database, repository=repository or FeedRepository(), bodies=bodies, notifier=notifier)
    streams = StreamService(
        database=database, repository=StreamRepository(), bodies=bodies, notifier=notifier, retention=RETENTION
    )
    try:
        yield ServerSide(feed=feed, streams=streams, notifier=notifier)
    finally:
        feed.end()
        streams.end()
        await notifier.close()


def shown(page: FeedPage) -> list[tuple[str, ...]]:
    """Each change as (action, path[, previous path]); each event as (kind, path)."""
    lines: list[tuple[str, ...]] = []
    for item in page.items:
        if isinstance(item.body, StreamEvent):
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
