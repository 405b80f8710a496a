from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from pathlib import Path

import pytest
from tests.support.files import below

from contextbase.backoff import Backoff
from contextbase.errors import BlobCorrupted, BlobStoreDenied, BlobStoreUnavailable, ContextbaseError
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import PIECE_SIZE
from contextbase.storage.blobs.memory import MemoryBlobStore
from contextbase.storage.blobs.ports import BlobStore, StoredBlob
from contextbase.storage.blobs.retry import RetryingBlobStore
from contextbase.storage.blobs.spool import SpoolFolder

CONTENT = bytes(range(256)) * (4 * PIECE_SIZE // 256)
RETRIES = 3


async def stream(content: bytes = CONTENT) -> AsyncIterator[bytes]:
    yield content


class FailingBlobStore(MemoryBlobStore):
    """Does half of what it is asked, then fails, as often as it is told."""

    def __init__(self, failures: int, error: ContextbaseError | None = None) -> None:
        super().__init__()
        self.failures = failures
        self.error = error or BlobStoreUnavailable("The store is away.")
        self.calls: list[str] = []

    def fail_if_told(self) -> None:
        if self.failures > 0:
            self.failures -= 1
            raise self.error

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        self.calls.append("put")
        pieces = [piece async for piece in content]
        self.fail_if_told()
        return await super().put(stream(b"".join(pieces)), expected=expected)

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        self.calls.append(f"get from {start // PIECE_SIZE}")
        async for piece in super().get(content_hash, start=start, end=end):
            yield piece
            self.fail_if_told()

    async def size(self, content_hash: ContentHash) -> int | None:
        self.calls.append("size")
        self.fail_if_told()
        return await super().size(content_hash)

    async def delete(self, content_hash: ContentHash) -> bool:
        self.calls.append("delete")
        self.fail_if_told()
        return await super().delete(content_hash)


def retrying(store: BlobStore, folder: Path, waits: list[float] | None = None) -> RetryingBlobStore:
    async def sleep(seconds: float) -> None:
        if waits is not None:
            waits.append(seconds)

    return RetryingBlobStore(store, spool=SpoolFolder(folder), backoff=Backoff(retries=RETRIES), sleep=sleep)


async def test_a_put_is_sent_again_from_the_beginning(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=RETRIES)

    stored = await retrying(failing, tmp_path).put(stream())

    assert failing.calls == ["put"] * (RETRIES + 1)
    assert await failing.verify(stored.hash) == len(CONTENT)
    assert below(tmp_path) == []


async def test_after_the_last_try_the_error_passes_on(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=RETRIES + 1)

    with pytest.raises(BlobStoreUnavailable):
        await retrying(failing, tmp_path).put(stream())

    assert failing.calls == ["put"] * (RETRIES + 1)
    assert below(tmp_path) == []


async def test_what_another_try_cannot_mend_is_not_tried_again(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=1, error=BlobStoreDenied("Wrong key."))

    with pytest.raises(BlobStoreDenied):
        await retrying(failing, tmp_path).size(ContentHash.of(CONTENT))

    assert failing.calls == ["size"]


async def test_a_read_goes_on_from_the_byte_it_had_reached(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=0)
    stored = await failing.put(stream())
    failing.calls.clear()
    failing.failures = 2

    read = b"".join([piece async for piece in retrying(failing, tmp_path).get(stored.hash)])

    assert read == CONTENT
    assert failing.calls == ["get from 0", "get from 1", "get from 2"]


async def test_a_read_that_gets_on_may_fail_more_often_than_one_that_does_not(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=0)
    stored = await failing.put(stream())
    failing.failures = RETRIES + 1

    assert await retrying(failing, tmp_path).verify(stored.hash) == len(CONTENT)


async def test_a_range_goes_on_to_its_own_end(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=0)
    stored = await failing.put(stream())
    failing.failures = 1
    start, end = PIECE_SIZE // 2, 3 * PIECE_SIZE

    read = b"".join([piece async for piece in retrying(failing, tmp_path).get(stored.hash, start=start, end=end)])

    assert read == CONTENT[start:end]


async def test_damage_is_found_in_a_read_pieced_together_from_two(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=0)
    stored = await failing.put(stream())
    failing._contents[stored.hash] = CONTENT[:-1] + b"?"
    failing.failures = 1

    with pytest.raises(BlobCorrupted):
        await retrying(failing, tmp_path).verify(stored.hash)


async def test_small_questions_are_asked_again(tmp_path: Path) -> None:
    failing = FailingBlobStore(failures=0)
    stored = await failing.put(stream())
    store = retrying(failing, tmp_path)

    failing.failures = 1
    assert await store.size(stored.hash) == len(CONTENT)
    failing.failures = 1
    assert await store.delete(stored.hash)


async def test_a_listing_is_tried_again_only_until_it_has_begun(tmp_path: Path) -> None:
    class FailingList(MemoryBlobStore):
        failures_before, fails_after_first = 2, False

        async def list(self) -> AsyncGenerator[StoredBlob, None]:
            if self.failures_before > 0:
                self.failures_before -= 1
                raise BlobStoreUnavailable("The store is away.")
            async for blob in super().list():
                yield blob
                if self.fails_after_first:
                    raise BlobStoreUnavailable("The store is away.")

    failing = FailingList()
    await failing.put(stream(b"one"))
    await failing.put(stream(b"two"))
    store = retrying(failing, tmp_path)

    assert len([blob async for blob in store.list()]) == 2
    failing.fails_after_first = True
    blobs = store.list()
    await anext(blobs)
    with pytest.raises(BlobStoreUnavailable):
        await anext(blobs)


def test_waits_double_up_to_the_longest_and_are_never_all_alike() -> None:
    waits: list[float] = []
    backoff = Backoff(retries=8, first=0.1, longest=2)

    for _ in range(20):
        for retry, delay in enumerate(backoff.delays()):
            full = min(2, 0.1 * 2**retry)
            assert full / 2 <= delay <= full
            waits.append(delay)

    assert len(waits) == 20 * 8
    assert len(set(waits)) > 20


async def test_it_waits_before_each_new_try(tmp_path: Path) -> None:
    waits: list[float] = []

    await retrying(FailingBlobStore(failures=2), tmp_path, waits).put(stream())

    assert len(waits) == 2
    assert 0 < waits[0] <= 0.1 <= waits[1] <= 0.2
