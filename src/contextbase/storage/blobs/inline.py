"""Small blobs in PostgreSQL itself: no second system to ask, and part of its backups."""

from collections.abc import AsyncGenerator, AsyncIterable, Collection, Mapping
from typing import Final

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import TooLarge
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import (
    PIECE_SIZE,
    HashCheck,
    check_expected,
    hash_of,
    length_of,
    missing,
    range_end,
)
from contextbase.storage.blobs.ports import StoredBlob
from contextbase.threads import in_thread

__all__ = ["InlineBlobStore"]

_SQL: Final = load_queries("contextbase.storage")
_LARGEST: Final = 64 * 1024 * 1024  # far above any sensible inline limit, far below what a row may hold
_PAGE: Final = 1000
_PLACE: Final = "the database"


class InlineBlobStore:
    """Holds a blob in memory as it passes, so it is for small ones; the schema checks that each hashes to its name."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        data = bytearray()
        async for piece in content:
            data += piece
            if len(data) > _LARGEST:
                raise TooLarge(f"A blob in the database has at most {_LARGEST} bytes.")
        body = bytes(data)
        content_hash = await hash_of(body)
        check_expected(content_hash, expected)
        async with self._database.connection() as connection:
            await connection.execute(_SQL.insert_blob_content, content_hash, body)
        return StoredBlob(hash=content_hash, size=len(body))

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        async with self._database.connection() as connection:
            body = await connection.fetchval(_SQL.blob_content, content_hash)
        if body is None:
            raise missing(content_hash, place=_PLACE)
        stop = range_end(start=start, end=end, size=len(body))
        for offset in range(start, stop, PIECE_SIZE):
            yield body[offset : min(offset + PIECE_SIZE, stop)]
        if start == 0 and end is None:
            check = HashCheck(content_hash, place=_PLACE)
            await check.update_off_loop(body)
            check.finish()

    async def read_all(self, names: Collection[ContentHash]) -> dict[ContentHash, bytes]:
        """Those of these blobs that are here, in one statement."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(_SQL.blob_contents_of, list(names))
        found: dict[ContentHash, bytes] = {ContentHash(row["hash"]): row["content"] for row in rows}
        await in_thread(_check, found)
        return found

    async def size(self, content_hash: ContentHash) -> int | None:
        return (await self.sizes([content_hash])).get(content_hash)

    async def sizes(self, names: Collection[ContentHash]) -> dict[ContentHash, int]:
        """Of those of these blobs that are here, in one statement."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(_SQL.blob_content_sizes, list(names))
        return {ContentHash(row["hash"]): row["size"] for row in rows}

    async def exists(self, content_hash: ContentHash) -> bool:
        return await self.size(content_hash) is not None

    async def list(self) -> AsyncGenerator[StoredBlob, None]:
        last = b""
        while True:
            async with self._database.connection() as connection:
                rows = await connection.fetch(_SQL.blob_content_page, last, _PAGE)
            for row in rows:
                yield StoredBlob(hash=ContentHash(row["hash"]), size=row["size"], stored_at=row["stored_at"])
            if len(rows) < _PAGE:
                return
            last = rows[-1]["hash"]

    async def delete(self, content_hash: ContentHash) -> bool:
        async with self._database.connection() as connection:
            return bool(await connection.fetchval(_SQL.delete_blob_content, content_hash))

    async def verify(self, content_hash: ContentHash) -> int:
        return await length_of(self.get(content_hash))


def _check(contents: Mapping[ContentHash, bytes]) -> None:
    for name, content in contents.items():
        check = HashCheck(name, place=_PLACE)
        check.update(content)
        check.finish()
