from collections.abc import AsyncIterable, AsyncIterator
from pathlib import Path

import pytest

from contextbase.errors import BlobMissing
from contextbase.ids import ContentHash
from contextbase.storage.blobs.memory import MemoryBlobStore
from contextbase.storage.blobs.ports import StoredBlob
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.blobs.tiered import TieredBlobStore

LIMIT = 10


@pytest.fixture
def small() -> MemoryBlobStore:
    return MemoryBlobStore()


@pytest.fixture
def large() -> MemoryBlobStore:
    return MemoryBlobStore()


@pytest.fixture
def store(small: MemoryBlobStore, large: MemoryBlobStore) -> TieredBlobStore:
    return TieredBlobStore(small=small, large=large, limit=LIMIT)


async def stream(content: bytes) -> AsyncIterator[bytes]:
    for byte in content:
        yield bytes([byte])


@pytest.mark.parametrize("length", [0, LIMIT - 1, LIMIT, LIMIT + 1])
async def test_size_decides_where_a_blob_goes(
    store: TieredBlobStore, small: MemoryBlobStore, large: MemoryBlobStore, length: int
) -> None:
    stored = await store.put(stream(bytes(length)))

    assert await small.exists(stored.hash) is (length < LIMIT)
    assert await large.exists(stored.hash) is (length >= LIMIT)


@pytest.mark.parametrize("length", [LIMIT - 1, LIMIT])
async def test_content_that_was_spooled_before_is_passed_on_as_it_is(tmp_path: Path, length: int) -> None:
    class Recording(MemoryBlobStore):
        given: AsyncIterable[bytes] | None = None

        async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
            self.given = content
            return await super().put(content, expected=expected)

    small, large = Recording(), Recording()
    async with SpoolFolder(tmp_path).spooled(stream(bytes(length))) as spooled:
        await TieredBlobStore(small=small, large=large, limit=LIMIT).put(spooled)

        assert (small if length < LIMIT else large).given is spooled
        assert (large if length < LIMIT else small).given is None


async def test_a_blob_on_the_other_side_of_the_limit_is_found_all_the_same(
    store: TieredBlobStore, small: MemoryBlobStore, large: MemoryBlobStore
) -> None:
    in_small = await small.put(stream(bytes(100)))  # put when the limit was another
    in_large = await large.put(stream(b"short"))

    assert await store.verify(in_small.hash) == 100
    assert await store.verify(in_large.hash) == 5
    assert await store.size(in_large.hash) == 5
    assert {blob.hash async for blob in store.list()} == {in_small.hash, in_large.hash}


async def test_deleting_removes_a_blob_from_both(
    store: TieredBlobStore, small: MemoryBlobStore, large: MemoryBlobStore
) -> None:
    await small.put(stream(b"both"))
    await large.put(stream(b"both"))

    assert await store.delete(ContentHash.of(b"both"))

    with pytest.raises(BlobMissing):
        await store.verify(ContentHash.of(b"both"))
