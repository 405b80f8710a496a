"""Small blobs in one store, large ones in another."""

from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Iterable
from contextlib import aclosing
from typing import Final

from contextbase.ids import ContentHash
from contextbase.storage.blobs.ports import BlobStore, StoredBlob
from contextbase.storage.blobs.spool import Spooled

__all__ = ["DEFAULT_LIMIT", "TieredBlobStore"]

DEFAULT_LIMIT: Final = 256 * 1024


class TieredBlobStore:
    """Content shorter than `limit` goes to `small`, all else to `large`; a blob in either is found.

    After the limit was changed a blob may be in both, until it is deleted: it is then listed twice.
    """

    def __init__(self, *, small: BlobStore, large: BlobStore, limit: int = DEFAULT_LIMIT) -> None:
        self._small = small
        self._large = large
        self._limit = limit

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        if isinstance(content, Spooled):
            store = self._small if content.size < self._limit else self._large
            return await store.put(content, expected=expected)
        pieces = aiter(content)
        beginning: list[bytes] = []
        length = 0
        while length < self._limit:
            piece = await anext(pieces, None)
            if piece is None:
                return await self._small.put(_chain(beginning), expected=expected)
            beginning.append(piece)
            length += len(piece)
        return await self._large.put(_chain(beginning, pieces), expected=expected)

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        store = await self._holder(content_hash)
        async with aclosing(store.get(content_hash, start=start, end=end)) as pieces:
            async for piece in pieces:
                yield piece

    async def size(self, content_hash: ContentHash) -> int | None:
        size = await self._small.size(content_hash)
        return await self._large.size(content_hash) if size is None else size

    async def exists(self, content_hash: ContentHash) -> bool:
        return await self._small.exists(content_hash) or await self._large.exists(content_hash)

    async def list(self) -> AsyncGenerator[StoredBlob, None]:
        for store in (self._small, self._large):
            async with aclosing(store.list()) as blobs:
                async for blob in blobs:
                    yield blob

    async def delete(self, content_hash: ContentHash) -> bool:
        removed = [await self._small.delete(content_hash), await self._large.delete(content_hash)]
        return any(removed)

    async def verify(self, content_hash: ContentHash) -> int:
        return await (await self._holder(content_hash)).verify(content_hash)

    async def _holder(self, content_hash: ContentHash) -> BlobStore:
        return self._small if await self._small.exists(content_hash) else self._large


async def _chain(beginning: Iterable[bytes], rest: AsyncIterable[bytes] | None = None) -> AsyncIterator[bytes]:
    for piece in beginning:
        yield piece
    if rest is not None:
        async for piece in rest:
            yield piece
