"""The way blobs come in and are found: bytes into the store first, then the row that everything else refers to."""

import secrets
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Collection, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from typing import Final

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import BlobMissing, ContentPurged
from contextbase.ids import ContentHash, ProjectId
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.ports import BlobStore, StoredBlob
from contextbase.storage.blobs.removal import hold_for_removal
from contextbase.storage.blobs.spool import Spooled, SpoolFolder
from contextbase.storage.blobs.tiered import TieredBlobStore

__all__ = ["BlobCatalog", "blob_lock"]

_SQL: Final = load_queries("contextbase.storage")


class BlobCatalog:
    """Keeps rows and bytes in step. What was put stays for GC's grace period, and as long as something refers to it.

    A live row means that the bytes are there. Small blobs get row and bytes in one statement; for large ones the row
    is made under the blob's lock, which GC holds while it removes one.
    """

    def __init__(
        self, *, database: Database, small: InlineBlobStore, large: BlobStore, limit: int, spool: SpoolFolder
    ) -> None:
        self._database = database
        self._small = small
        self._large = large
        self._limit = limit
        self._spool = spool
        self._store = TieredBlobStore(small=small, large=large, limit=limit)

    @property
    def limit(self) -> int:
        """Blobs shorter than this are in the database."""
        return self._limit

    @property
    def store(self) -> BlobStore:
        """Both tiers as one store, without the rows: for fsck and GC."""
        return self._store

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        """Store the content; when this returns, a version may name it. Also renews a blob that is there already."""
        async with self._spool.spooled(content, expected=expected) as spooled:
            if spooled.size < self._limit:
                return await self._put_small(spooled)
            return await self._put_large(spooled)

    async def put_bytes(self, content: bytes, *, expected: ContentHash | None = None) -> StoredBlob:
        """As `put`, of a content that is in memory already."""
        return await self.put(_whole(content), expected=expected)

    async def put_all(self, contents: Mapping[ContentHash, bytes]) -> None:
        """As `put`, of several small contents at once."""
        async with self._database.transaction() as connection:
            removed = await self.keep_small(connection, contents)
        for name in removed:
            await self.put_bytes(contents[name], expected=name)

    async def keep_small(self, connection: Connection, contents: Mapping[ContentHash, bytes]) -> list[ContentHash]:
        """Store small contents in the caller's transaction; returns those that GC is removing this moment, or that were
        purged: `put` waits for these."""
        if not contents:
            return []
        rows = await connection.fetch(_SQL.insert_new_blobs, [*contents], [*contents.values()])
        made = {row["hash"] for row in rows}
        there = [name for name in contents if name not in made]
        if not there:
            return []
        kept = {row["hash"] for row in await connection.fetch(_SQL.fresh_blobs, there)}
        if stale := [name for name in there if name not in kept]:
            kept.update(row["hash"] for row in await connection.fetch(_SQL.renew_blobs, stale))
        return [name for name in there if name not in kept]

    async def _put_small(self, spooled: Spooled) -> StoredBlob:
        body = b"".join([piece async for piece in spooled])
        while True:
            async with self._database.connection() as connection:
                if await connection.fetchval(_SQL.put_inline, spooled.hash, body):
                    return StoredBlob(hash=spooled.hash, size=spooled.size)
            async with blob_lock(self._database, spooled.hash) as connection:
                # GC, or a purge, is done with it, or died half-way and left a row that is not live.
                await connection.execute(_SQL.forget_blob, spooled.hash)

    async def _put_large(self, spooled: Spooled) -> StoredBlob:
        async with self._database.connection() as connection:
            renewed = await connection.fetchval(_SQL.renew_blob, spooled.hash)
        # Without the lock, which would keep a database connection for as long as the upload takes.
        blob = await self._large.put(spooled)
        if renewed:
            return blob
        async with blob_lock(self._database, spooled.hash) as connection:
            if not await self._large.exists(spooled.hash):  # GC removed what we had found there
                blob = await self._large.put(spooled)
            await connection.execute(_SQL.record_blob, blob.hash, blob.size)
        return blob

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        """Its bytes; raises `ContentPurged` for one that was removed on purpose."""
        try:
            async with aclosing(self._store.get(content_hash, start=start, end=end)) as pieces:
                async for piece in pieces:
                    yield piece
        except BlobMissing:
            async with self._database.connection() as connection:
                await _refuse_purged(connection, content_hash)
            raise

    async def read(self, content_hash: ContentHash) -> bytes:
        """A whole blob at once: for contents known to be small."""
        return b"".join([piece async for piece in self.get(content_hash)])

    async def read_all(self, names: Collection[ContentHash]) -> dict[ContentHash, bytes]:
        """As `read`, of several: those in the database in one statement."""
        found = await self._small.read_all(names)
        for name in set(names) - found.keys():
            found[name] = await self.read(name)
        return found

    async def sizes(self, names: Collection[ContentHash]) -> dict[ContentHash, int]:
        """Of those of these blobs whose bytes are there."""
        found = await self._small.sizes(names)
        for name in set(names) - found.keys():
            if (size := await self._large.size(name)) is not None:
                found[name] = size
        return found

    async def bury(self, connection: Connection, names: Sequence[ContentHash], projects: Sequence[ProjectId]) -> None:
        """Put tombstones in the place of these contents in the projects' history, in the caller's transaction. Nobody
        can refer to the contents from then on; `purge` comes after. Raises asyncpg's `ForeignKeyViolationError` if
        another project refers to one of them."""
        tombstones = [ContentHash(secrets.token_bytes(32)) for _ in names]
        await connection.execute(_SQL.insert_tombstones, names, tombstones)
        await connection.execute(_SQL.bury_contents, names, tombstones, projects)
        await connection.execute(_SQL.release_blobs, names)

    async def purge(self, names: Sequence[ContentHash]) -> None:
        """Remove the bytes of what was buried, unless somebody has stored it again since; `Conflict` while a backup
        runs. Can be repeated; so does GC, should nobody get that far."""
        for name in names:
            async with blob_lock(self._database, name) as connection:
                await hold_for_removal(connection)
                row = await connection.fetchrow(_SQL.blob_row, name)
                if row is not None and not row["live"]:
                    await self._store.delete(name)
                    await connection.execute(_SQL.forget_blob, name)


async def _whole(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _refuse_purged(connection: Connection, content_hash: ContentHash) -> None:
    if await connection.fetchval(_SQL.is_purged, content_hash):
        raise ContentPurged(f"The content {str(content_hash)[:12]}… was purged from all history.")


@asynccontextmanager
async def blob_lock(database: Database, content_hash: ContentHash) -> AsyncIterator[Connection]:
    """One process at a time removes, or revives, a blob. The lock dies with its connection."""
    key = int.from_bytes(content_hash[:8], "big", signed=True)
    async with database.session() as connection:
        await connection.execute(_SQL.lock_blob, key)
        yield connection
