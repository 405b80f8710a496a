"""Garbage collection: removes blobs nothing refers to, never one that something does.

For each blob, under its lock: (1) take `live` away, which the foreign keys refuse while anything refers to it;
(2) remove the bytes; (3) remove the row. A put of the same content in between sees the row that is not live, waits
for the lock and stores the bytes again. Killed at any point, the next run picks up the row that is not live.
"""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

import asyncpg

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.ids import Clock, ContentHash
from contextbase.storage.blobs.catalog import blob_lock
from contextbase.storage.blobs.ports import BlobStore, StoredBlob
from contextbase.storage.blobs.removal import hold_for_removal
from contextbase.storage.blobs.spool import SpoolFolder

__all__ = ["Collected", "GarbageCollector"]

_SQL: Final = load_queries("contextbase.storage")
_PAGE: Final = 500


@dataclass(kw_only=True, slots=True)
class Collected:
    """What one run did, counted as it goes."""

    blobs: int = 0
    bytes: int = 0
    temporary_files: int = 0
    dry_run: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class GarbageCollector:
    database: Database
    store: BlobStore
    spool: SpoolFolder
    clock: Clock

    async def run(
        self,
        *,
        grace: timedelta,
        dry_run: bool = False,
        on_progress: Callable[[Collected], None] = lambda _: None,
    ) -> Collected:
        """Collect what has been unreferenced and untouched for the grace period; `Conflict` while a backup runs."""
        before = self.clock.now() - grace
        collected = Collected(dry_run=dry_run)
        await self._collect_rows(before, collected, on_progress)
        await self._collect_strays(before, collected, on_progress)
        if not dry_run:
            collected.temporary_files = await self.spool.remove_stale()
        return collected

    async def _collect_rows(
        self, before: datetime, collected: Collected, on_progress: Callable[[Collected], None]
    ) -> None:
        last = b""
        while True:
            async with self.database.connection() as connection:
                rows = await connection.fetch(_SQL.garbage_page, last, before, _PAGE)
            for row in rows:
                if collected.dry_run or await self._remove(ContentHash(row["hash"]), before):
                    collected.blobs += 1
                    collected.bytes += row["size"]
                    on_progress(collected)
            if len(rows) < _PAGE:
                return
            last = rows[-1]["hash"]

    async def _collect_strays(
        self, before: datetime, collected: Collected, on_progress: Callable[[Collected], None]
    ) -> None:
        """Bytes without a row: their put died between the two."""
        async with aclosing(self.store.list()) as blobs:
            async for blob in blobs:
                if blob.stored_at is None or blob.stored_at >= before:
                    continue
                if await self._is_stray(blob, mark=not collected.dry_run) and (
                    collected.dry_run or await self._remove(blob.hash, before)
                ):
                    collected.blobs += 1
                    collected.bytes += blob.size
                    on_progress(collected)

    async def _is_stray(self, blob: StoredBlob, *, mark: bool) -> bool:
        """Whether no row knows these bytes; with `mark`, one that is not live does from now on."""
        async with self.database.connection() as connection:
            if await connection.fetchrow(_SQL.blob_row, blob.hash) is not None:
                return False
            return not mark or bool(await connection.fetchval(_SQL.mark_stray, blob.hash, blob.size))

    async def _remove(self, content_hash: ContentHash, before: datetime) -> bool:
        async with blob_lock(self.database, content_hash) as connection:
            await hold_for_removal(connection)
            try:
                if not await connection.fetchval(_SQL.mark_blob, content_hash, before):
                    return False  # put again or referred to since we listed it
            except asyncpg.ForeignKeyViolationError:
                return False  # referred to this very moment
            await self.store.delete(content_hash)
            await connection.execute(_SQL.forget_blob, content_hash)
            return True
