"""The blob store for tests: the same promises, kept in a dict."""

from collections.abc import AsyncGenerator, AsyncIterable

from contextbase.ids import Clock, ContentHash, SystemClock
from contextbase.storage.blobs.integrity import PIECE_SIZE, HashCheck, check_expected, length_of, missing, range_end
from contextbase.storage.blobs.ports import StoredBlob

__all__ = ["MemoryBlobStore"]


class MemoryBlobStore:
    def __init__(self, *, clock: Clock | None = None) -> None:
        self._clock = clock or SystemClock()
        self._contents: dict[ContentHash, bytes] = {}
        self._stored: dict[ContentHash, StoredBlob] = {}

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        data = b"".join([piece async for piece in content])
        content_hash = ContentHash.of(data)
        check_expected(content_hash, expected)
        there = self._contents.get(content_hash)
        if there is None or len(there) != len(data):
            self._contents[content_hash] = data
            self._stored[content_hash] = StoredBlob(hash=content_hash, size=len(data), stored_at=self._clock.now())
        return self._stored[content_hash]

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        if content_hash not in self._contents:
            raise missing(content_hash, place="memory")
        data = self._contents[content_hash]
        stop = range_end(start=start, end=end, size=len(data))
        for offset in range(start, stop, PIECE_SIZE):
            yield data[offset : min(offset + PIECE_SIZE, stop)]
        if start == 0 and end is None:
            check = HashCheck(content_hash, place="memory", promised=self._stored[content_hash].size)
            check.update(data)
            check.finish()

    async def size(self, content_hash: ContentHash) -> int | None:
        return len(self._contents[content_hash]) if content_hash in self._contents else None

    async def exists(self, content_hash: ContentHash) -> bool:
        return content_hash in self._contents

    async def list(self) -> AsyncGenerator[StoredBlob, None]:
        for blob in tuple(self._stored.values()):
            yield blob

    async def delete(self, content_hash: ContentHash) -> bool:
        self._contents.pop(content_hash, None)
        return self._stored.pop(content_hash, None) is not None

    async def verify(self, content_hash: ContentHash) -> int:
        return await length_of(self.get(content_hash))
