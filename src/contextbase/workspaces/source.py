"""Snapshots for a mirror, straight from the database and the blob store."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import UTC, datetime, timedelta
from typing import Final

import asyncpg

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import ContentPurged
from contextbase.gate.repository import GateRepository
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.model import Kind
from contextbase.workspaces.model import MirrorEntry, SnapshotKey
from contextbase.workspaces.ports import LocalContent
from contextbase.workspaces.repository import content_of_row, older_content_of_row

__all__ = ["DatabaseSnapshots"]

_SQL: Final = load_queries("contextbase.workspaces")
_PAGE: Final = 5000
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_PURGED: Final = b"The content of this file was purged from all history.\n"


class DatabaseSnapshots:
    """A `SnapshotSource`."""

    def __init__(self, *, database: Database, catalog: BlobCatalog, spool: SpoolFolder) -> None:
        self._database = database
        self._catalog = catalog
        self._spool = spool
        self._repository = GateRepository()

    async def changes(
        self, older: SnapshotKey, newer: Seq, *, below: TreePath | None = None
    ) -> AsyncIterator[MirrorEntry]:
        after = ""
        while True:
            about = (older.project_id, newer) if older.seq == 0 else (older.project_id, older.seq, newer)
            place = () if below is None else (below,)
            async with self._database.connection() as connection:
                rows = await connection.fetch(_query(older.seq, below), *about, after, _PAGE, *place)
            for row in rows:
                if older.seq == 0 or content_of_row(row) != older_content_of_row(row):
                    yield _entry(row)
            if len(rows) < _PAGE:
                return
            after = rows[-1]["path"]

    async def count_changes(self, older: SnapshotKey, newer: Seq, *, below: TreePath | None = None, most: int) -> int:
        place = () if below is None else (below,)
        query = _SQL.count_changes if below is None else _SQL.count_changes_below
        async with self._database.connection() as connection:
            counted: int = await connection.fetchval(query, older.project_id, older.seq, newer, most, *place)
        return counted

    async def standing(self, snapshot: SnapshotKey, folders: Collection[TreePath]) -> frozenset[TreePath]:
        async with self._database.connection() as connection:
            rows = await connection.fetch(_SQL.standing_folders, snapshot.project_id, snapshot.seq, list(folders))
        return frozenset(TreePath.stored(row["path"]) for row in rows)

    @asynccontextmanager
    async def contents(
        self,
        snapshot: SnapshotKey,  # noqa: ARG002 - content is named by its hash alone here
        hashes: Collection[ContentHash],
    ) -> AsyncIterator[Mapping[ContentHash, LocalContent]]:
        async with self._database.connection() as connection:
            inline = await self._repository.inline_contents(connection, list(hashes))
        found: dict[ContentHash, LocalContent] = dict(inline)
        async with AsyncExitStack() as stack:
            for name in set(hashes) - found.keys():
                try:
                    found[name] = (await stack.enter_async_context(self._spool.spooled(self._catalog.get(name)))).held
                except ContentPurged:
                    found[name] = _PURGED
            yield found


def _query(older: Seq, below: TreePath | None) -> str:
    if below is None:
        return _SQL.snapshot_entries if older == 0 else _SQL.changed_entries
    return _SQL.snapshot_entries_below if older == 0 else _SQL.changed_entries_below


def _entry(row: asyncpg.Record) -> MirrorEntry:
    content_hash = row["content_hash"]
    return MirrorEntry(
        path=TreePath.stored(row["path"]),
        kind=Kind(row["kind"]),
        content_hash=None if content_hash is None else ContentHash(content_hash),
        size=row["size"],
        executable=row["executable"],
        changed_at=(row["committed_at"] - _EPOCH) // timedelta(microseconds=1) * 1000,
        existed=row["existed"],
    )
