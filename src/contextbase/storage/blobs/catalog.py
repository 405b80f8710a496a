"""The way blobs come in and are found: bytes into the store first, then the row that everything else refers to."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.ids import ContentHash
from contextbase.storage.blobs.ports import BlobStore, StoredBlob
from contextbase.storage.blobs.spool import Spooled, SpoolFolder

__all__ = ["BlobCatalog", "blob_lock"]

_SQL: Final = load_queries("contextbase.storage")


class BlobCatalog:
    """Keeps rows and bytes in step. What was put stays for GC's grace period, and as long as something refers to it."""

    def __init__(self, *, database: Database, store: BlobStore, spool: SpoolFolder) -> None:
        self._database = database
        self._store = store
        self._spool = spool

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        """Store the content; when this returns, a version may name it. Also renews a blob that is there already."""
        async with self._spool.spooled(content, expected=expected) as spooled:
            blob = await self._store.put(spooled)
            async with self._database.connection() as connection:
                if await connection.fetchval(_SQL.renew_blob, blob.hash, blob.size):
                    return blob
            return await self._put_after_collection(spooled)

    async def _put_after_collection(self, spooled: Spooled) -> StoredBlob:
        """GC was removing the very bytes we found: wait until it is done (or dead), then store them again."""
        async with blob_lock(self._database, spooled.hash) as connection:
            blob = await self._store.put(spooled)
            await connection.execute(_SQL.revive_blob, blob.hash, blob.size)
            return blob

    def get(self, content_hash: ContentHash, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        return self._store.get(content_hash, start=start, end=end)

    async def read(self, content_hash: ContentHash) -> bytes:
        """A whole blob at once: for contents known to be small."""
        return b"".join([piece async for piece in self._store.get(content_hash)])


@asynccontextmanager
async def blob_lock(database: Database, content_hash: ContentHash) -> AsyncIterator[Connection]:
    """One process at a time removes, or revives, a blob. The lock dies with its connection."""
    key = int.from_bytes(content_hash[:8], "big", signed=True)
    async with database.connection() as connection:
        await connection.execute(_SQL.lock_blob, key)
        try:
            yield connection
        finally:
            await connection.execute(_SQL.unlock_blob, key)
