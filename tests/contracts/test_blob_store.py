"""What `BlobStore` promises, over every implementation. To add one: its name in STORES and its fixture `NAME_store`."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random

import pytest
from tests.support.files import below
from tests.support.s3_server import S3Server

from contextbase.db.database import Database
from contextbase.errors import BlobCorrupted, BlobMissing, BlobTruncated, InvalidInput
from contextbase.ids import ContentHash
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.integrity import PIECE_SIZE
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.memory import MemoryBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.retry import RetryingBlobStore
from contextbase.storage.blobs.s3 import PART_SIZE, S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.blobs.tiered import DEFAULT_LIMIT, TieredBlobStore

STORES = ("memory", "postgresql", "local", "s3", "retrying", "tiered")

LONG = PART_SIZE + PIECE_SIZE + 17  # more than one part, and no round number


@dataclass(frozen=True, kw_only=True)
class Subject:
    """A store under test, and two ways to go behind its back."""

    store: BlobStore
    overwrite: Callable[[ContentHash, bytes], Awaitable[None]]  # as a failing disk or a stranger would
    leftovers: Callable[[], Sequence[object]] = field(default=list)  # what unfinished puts left


@pytest.fixture(params=STORES)
def subject(request: pytest.FixtureRequest) -> Subject:
    found = request.getfixturevalue(f"{request.param}_store")
    assert isinstance(found, Subject)
    return found


@pytest.fixture
def store(subject: Subject) -> BlobStore:
    return subject.store


@pytest.fixture
def memory_store() -> Subject:
    memory = MemoryBlobStore()
    return Subject(store=memory, overwrite=overwrite_in(memory))


@pytest.fixture
def postgresql_store(embedded_database: Database) -> Subject:
    async def overwrite(content_hash: ContentHash, data: bytes) -> None:
        async with embedded_database.transaction() as connection:
            await connection.execute("ALTER TABLE blob_contents DROP CONSTRAINT blob_contents_hash_to_their_name")
            await connection.execute("UPDATE blob_contents SET content = $2 WHERE hash = $1", content_hash, data)

    return Subject(store=InlineBlobStore(embedded_database), overwrite=overwrite)


@pytest.fixture
def local_store(tmp_path: Path) -> Subject:
    local = LocalBlobStore(tmp_path / "blobs")

    async def overwrite(content_hash: ContentHash, data: bytes) -> None:
        path = local.path(content_hash)
        path.unlink()
        path.write_bytes(data)

    return Subject(store=local, overwrite=overwrite, leftovers=lambda: below(tmp_path / "blobs" / "tmp"))


@pytest.fixture
def s3_store(s3_server: S3Server, s3_connection: S3Connection, tmp_path: Path) -> Subject:
    async def overwrite(content_hash: ContentHash, data: bytes) -> None:
        name = str(content_hash)
        stranger = s3_connection.open(total_timeout=timedelta(seconds=30))
        await stranger.put_async(f"objects/{name[:2]}/{name[2:]}", data)

    return Subject(
        store=S3BlobStore(s3_connection, spool=SpoolFolder(tmp_path / "spool")),
        overwrite=overwrite,
        leftovers=lambda: [*below(tmp_path / "spool"), *s3_server.unfinished_uploads()],
    )


@pytest.fixture
def retrying_store(tmp_path: Path) -> Subject:
    memory = MemoryBlobStore()
    return Subject(
        store=RetryingBlobStore(memory, spool=SpoolFolder(tmp_path / "spool")),
        overwrite=overwrite_in(memory),
        leftovers=lambda: below(tmp_path / "spool"),
    )


@pytest.fixture
def tiered_store() -> Subject:
    small, large = MemoryBlobStore(), MemoryBlobStore()

    async def overwrite(content_hash: ContentHash, data: bytes) -> None:
        await overwrite_in(small if await small.exists(content_hash) else large)(content_hash, data)

    return Subject(store=TieredBlobStore(small=small, large=large), overwrite=overwrite)


def overwrite_in(memory: MemoryBlobStore) -> Callable[[ContentHash, bytes], Awaitable[None]]:
    async def overwrite(content_hash: ContentHash, data: bytes) -> None:
        memory._contents[content_hash] = data

    return overwrite


def content_of(length: int, *, seed: int = 1) -> bytes:
    return Random(seed).randbytes(length)


async def in_pieces(content: bytes, length: int = 100_000) -> AsyncIterator[bytes]:
    for offset in range(0, len(content), length):
        yield content[offset : offset + length]


async def read(store: BlobStore, content_hash: ContentHash, start: int = 0, end: int | None = None) -> bytes:
    return b"".join([piece async for piece in store.get(content_hash, start=start, end=end)])


async def listed(store: BlobStore) -> dict[ContentHash, int]:
    return {blob.hash: blob.size async for blob in store.list()}


@pytest.mark.parametrize(
    "length", [0, 1, DEFAULT_LIMIT - 1, DEFAULT_LIMIT, PIECE_SIZE, PIECE_SIZE + 1, PART_SIZE, PART_SIZE + 1, LONG]
)
async def test_what_was_put_comes_back(store: BlobStore, length: int) -> None:
    content = content_of(length)

    stored = await store.put(in_pieces(content))

    assert (stored.hash, stored.size) == (ContentHash.of(content), length)
    assert await read(store, stored.hash) == content
    assert await store.size(stored.hash) == length
    assert await store.exists(stored.hash)
    assert await store.verify(stored.hash) == length


@pytest.mark.parametrize("piece_length", [1, 3 * PIECE_SIZE + 1])
async def test_the_pieces_a_content_arrives_in_do_not_matter(store: BlobStore, piece_length: int) -> None:
    content = content_of(min(piece_length * 5_000, 4 * PIECE_SIZE))

    stored = await store.put(in_pieces(content, piece_length))

    assert await read(store, stored.hash) == content


async def test_content_is_read_in_pieces_of_at_most_one_mebibyte(store: BlobStore) -> None:
    stored = await store.put(in_pieces(content_of(LONG)))

    lengths = [len(piece) async for piece in store.get(stored.hash)]

    assert sum(lengths) == LONG
    assert 0 < min(lengths) <= max(lengths) <= PIECE_SIZE


@pytest.mark.parametrize(
    ("start", "end"),
    [(0, 0), (0, 1), (0, LONG), (5, 5), (1, None), (PIECE_SIZE - 1, PIECE_SIZE + 1), (LONG - 1, LONG), (LONG, None)],
)
async def test_a_range_is_exactly_those_bytes(store: BlobStore, start: int, end: int | None) -> None:
    content = content_of(LONG)
    stored = await store.put(in_pieces(content))

    assert await read(store, stored.hash, start, end) == content[start:end]


@pytest.mark.parametrize(("start", "end"), [(-1, 3), (3, 2), (0, 11), (11, None), (11, 12)])
async def test_a_range_outside_the_blob_is_refused(store: BlobStore, start: int, end: int | None) -> None:
    stored = await store.put(in_pieces(b"ten bytes!"))

    with pytest.raises(InvalidInput):
        await read(store, stored.hash, start, end)


async def test_a_blob_that_is_not_there_is_missing_in_every_way(store: BlobStore) -> None:
    nothing = ContentHash.of(b"never stored")

    assert await store.size(nothing) is None
    assert not await store.exists(nothing)
    assert not await store.delete(nothing)
    with pytest.raises(BlobMissing, match=str(nothing)):
        await read(store, nothing)
    with pytest.raises(BlobMissing):
        await read(store, nothing, 1, 2)
    with pytest.raises(BlobMissing):
        await store.verify(nothing)


async def test_putting_a_blob_again_leaves_it_as_it_is(subject: Subject) -> None:
    stored = await subject.store.put(in_pieces(b"the original"))
    await subject.overwrite(stored.hash, b"THE ORIGINAL")

    again = await subject.store.put(in_pieces(b"the original"))

    assert (again.hash, again.size) == (stored.hash, stored.size)
    assert await read(subject.store, stored.hash, 0, 12) == b"THE ORIGINAL"


@pytest.mark.parametrize("length", [100, LONG])
async def test_putting_a_blob_again_mends_one_of_the_wrong_size(subject: Subject, length: int) -> None:
    content = content_of(length)
    stored = await subject.store.put(in_pieces(content))
    await subject.overwrite(stored.hash, content[:50])

    await subject.store.put(in_pieces(content))

    assert await subject.store.verify(stored.hash) == length


@pytest.mark.parametrize("length", [100, LONG])
async def test_sixteen_writers_of_one_content_all_succeed_and_make_one_blob(subject: Subject, length: int) -> None:
    content = content_of(length)

    stored = await asyncio.gather(*(subject.store.put(in_pieces(content)) for _ in range(16)))

    assert {blob.hash for blob in stored} == {ContentHash.of(content)}
    assert [blob.size async for blob in subject.store.list()] == [length]
    assert await subject.store.verify(stored[0].hash) == length
    assert subject.leftovers() == []


async def test_content_that_is_not_what_was_announced_is_refused(subject: Subject) -> None:
    announced = ContentHash.of(b"what was announced")

    for length in (20, LONG):
        with pytest.raises(BlobCorrupted, match=str(announced)):
            await subject.store.put(in_pieces(content_of(length)), expected=announced)

    assert await listed(subject.store) == {}
    assert subject.leftovers() == []


async def test_content_that_is_what_was_announced_is_stored(store: BlobStore) -> None:
    content = content_of(1000)

    stored = await store.put(in_pieces(content), expected=ContentHash.of(content))

    assert await read(store, stored.hash) == content


@pytest.mark.parametrize("length", [10, LONG])
async def test_a_stream_that_fails_stores_nothing_and_its_error_passes_through(subject: Subject, length: int) -> None:
    class SourceBroke(OSError):
        pass

    async def breaking() -> AsyncIterator[bytes]:
        async for piece in in_pieces(content_of(length)):
            yield piece
        raise SourceBroke

    with pytest.raises(SourceBroke):
        await subject.store.put(breaking())

    assert await listed(subject.store) == {}
    assert subject.leftovers() == []


@pytest.mark.parametrize("length", [10, LONG])
async def test_a_put_cancelled_while_its_stream_waits_leaves_nothing(subject: Subject, length: int) -> None:
    waiting = asyncio.Event()

    async def endless() -> AsyncIterator[bytes]:
        async for piece in in_pieces(content_of(length)):
            yield piece
        waiting.set()
        await asyncio.Event().wait()

    put = asyncio.create_task(subject.store.put(endless()))
    await waiting.wait()
    put.cancel()
    with pytest.raises(asyncio.CancelledError):
        await put

    assert await listed(subject.store) == {}
    assert subject.leftovers() == []


async def test_every_blob_is_listed_with_its_size_and_time(store: BlobStore) -> None:
    before = datetime.now(UTC) - timedelta(seconds=2)  # S3 tells whole seconds
    contents = [content_of(length, seed=length) for length in (0, 5, DEFAULT_LIMIT, DEFAULT_LIMIT + 1)]
    for content in contents:
        await store.put(in_pieces(content))

    blobs = [blob async for blob in store.list()]

    assert {blob.hash: blob.size for blob in blobs} == {ContentHash.of(content): len(content) for content in contents}
    assert len(blobs) == len(contents)
    assert all(blob.stored_at is None or before <= blob.stored_at <= datetime.now(UTC) for blob in blobs)


async def test_an_empty_store_lists_nothing(store: BlobStore) -> None:
    assert await listed(store) == {}


async def test_a_deleted_blob_is_gone_and_can_be_put_again(store: BlobStore) -> None:
    kept = await store.put(in_pieces(b"kept"))
    stored = await store.put(in_pieces(b"deleted"))

    assert await store.delete(stored.hash)

    assert not await store.exists(stored.hash)
    assert await listed(store) == {kept.hash: kept.size}
    assert not await store.delete(stored.hash)
    await store.put(in_pieces(b"deleted"))
    assert await read(store, stored.hash) == b"deleted"


@pytest.mark.parametrize("length", [100, LONG])
async def test_altered_bytes_are_found_by_a_whole_read_and_by_verify(subject: Subject, length: int) -> None:
    content = content_of(length)
    stored = await subject.store.put(in_pieces(content))
    await subject.overwrite(stored.hash, content[:-1] + bytes([content[-1] ^ 1]))

    with pytest.raises(BlobCorrupted, match=str(stored.hash)):
        await read(subject.store, stored.hash)
    with pytest.raises(BlobCorrupted):
        await subject.store.verify(stored.hash)


async def test_missing_bytes_are_found_by_a_whole_read_and_by_verify(subject: Subject) -> None:
    content = content_of(LONG)
    stored = await subject.store.put(in_pieces(content))
    await subject.overwrite(stored.hash, content[:-1])

    # Only a store that keeps the size apart from the bytes can tell which of the two it is.
    with pytest.raises((BlobTruncated, BlobCorrupted), match=str(stored.hash)):
        await read(subject.store, stored.hash)
    with pytest.raises((BlobTruncated, BlobCorrupted)):
        await subject.store.verify(stored.hash)


async def test_a_reader_may_stop_early(store: BlobStore) -> None:
    content = content_of(LONG)
    stored = await store.put(in_pieces(content))

    async with aclosing(store.get(stored.hash)) as pieces:
        first = await anext(pieces)

    assert content.startswith(first)
    assert await store.verify(stored.hash) == LONG


@pytest.mark.parametrize("length", [100, LONG])
async def test_content_that_was_spooled_before_is_stored_like_any_other(
    store: BlobStore, tmp_path: Path, length: int
) -> None:
    content = content_of(length)

    async with SpoolFolder(tmp_path / "earlier").spooled(in_pieces(content)) as spooled:
        stored = await store.put(spooled)
        assert b"".join([piece async for piece in spooled]) == content

    assert await read(store, stored.hash) == content
