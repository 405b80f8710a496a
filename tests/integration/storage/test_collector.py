"""Garbage collection removes what nothing refers to, and never anything else, whoever else is busy."""

import asyncio
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.tree_writer import TreeWriter, in_pieces

from contextbase.db.database import Database
from contextbase.errors import BlobMissing
from contextbase.ids import ContentHash, SystemClock, new_uuid
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.collector import Collected, GarbageCollector

LIMIT = 1000
SMALL, LARGE = b"small", b"large" * 1000
NO_GRACE = timedelta(0)


class PausedStore(LocalBlobStore):
    """Stops in the middle of a delete until it is told to go on."""

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.reached, self.go_on = asyncio.Event(), asyncio.Event()

    async def delete(self, content_hash: ContentHash) -> bool:
        self.reached.set()
        await self.go_on.wait()
        return await super().delete(content_hash)


@dataclass
class World:
    database: Database
    store: BlobStore
    catalog: BlobCatalog
    collector: GarbageCollector
    large: LocalBlobStore

    async def put(self, content: bytes) -> ContentHash:
        return (await self.catalog.put(in_pieces(content))).hash

    async def collect(self, grace: timedelta = NO_GRACE) -> Collected:
        return await self.collector.run(grace=grace)


def world_over(database: Database, large: LocalBlobStore, folder: Path) -> World:
    spool = SpoolFolder(folder / "spool")
    small = InlineBlobStore(database)
    catalog = BlobCatalog(database=database, small=small, large=large, limit=LIMIT, spool=spool)
    return World(
        database=database,
        store=catalog.store,
        catalog=catalog,
        collector=GarbageCollector(database=database, store=catalog.store, spool=spool, clock=SystemClock()),
        large=large,
    )


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> World:
    return world_over(database, LocalBlobStore(tmp_path / "blobs"), tmp_path)


async def test_what_nothing_refers_to_goes_after_the_grace_period_and_not_before(world: World) -> None:
    hashes = [await world.put(SMALL), await world.put(LARGE)]
    assert (await world.collect(timedelta(hours=1))).blobs == 0
    assert all([await world.store.exists(name) for name in hashes])
    collected = await world.collect()
    assert (collected.blobs, collected.bytes) == (2, len(SMALL) + len(LARGE))
    assert not any([await world.store.exists(name) for name in hashes])
    async with world.database.connection() as connection:
        assert await connection.fetchval("SELECT count(*) FROM blobs") == 0


async def test_a_put_after_a_collection_that_was_killed_records_its_own_size(world: World) -> None:
    """What the collection had marked was damaged: the row must not keep the damaged size."""
    name = ContentHash.of(LARGE)
    async with world.database.connection() as connection:
        await connection.execute("INSERT INTO blobs (hash, size, live) VALUES ($1, 3, false)", name)
    assert await world.put(LARGE) == name
    async with world.database.connection() as connection:
        assert await connection.fetchval("SELECT size FROM blobs WHERE hash = $1 AND live", name) == len(LARGE)


async def test_a_dry_run_counts_and_removes_nothing(world: World) -> None:
    name = await world.put(LARGE)
    assert (await world.collector.run(grace=NO_GRACE, dry_run=True)).blobs == 1
    assert await world.store.exists(name)


async def test_every_version_old_or_deleted_or_set_aside_keeps_its_blob(world: World) -> None:
    writer = await TreeWriter.start(world.database)
    contents = [b"first", b"second", b"third" * 1000]
    first, second, third = [await world.put(content) for content in contents]
    await writer.commit([writer.write("a", first, size=5)], [writer.write("a", second, size=6)], [writer.delete("a")])
    version = writer.write("b", second, size=6)
    await writer.commit([version])
    async with world.database.transaction() as connection:
        await connection.execute(
            """INSERT INTO side_versions (project_id, id, seq, node_id, path, reason, kind, content_hash, size)
               VALUES ($1, $2, 4, $3, 'b', 'superseded', 'file', $4, 5000)""",
            writer.project.id, new_uuid(), version.node_id, third,
        )  # fmt: skip
    assert (await world.collect()).blobs == 0
    assert [await world.store.verify(name) for name in (first, second, third)] == [5, 6, 5000]


async def test_a_put_of_what_is_being_removed_waits_and_stores_it_again(database: Database, tmp_path: Path) -> None:
    large = PausedStore(tmp_path / "blobs")
    world = world_over(database, large, tmp_path)
    name = await world.put(LARGE)
    collecting = asyncio.create_task(world.collect())
    await large.reached.wait()  # marked, lock held, bytes about to go
    putting = asyncio.create_task(world.put(LARGE))
    done, _ = await asyncio.wait({putting}, timeout=0.3)
    assert not done, "the put returned while its bytes were being removed"
    large.go_on.set()
    assert await putting == name
    assert (await collecting).blobs == 1
    assert await world.store.verify(name) == len(LARGE)
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT live FROM blobs WHERE hash = $1", name) is True


async def test_a_version_cannot_name_a_blob_that_is_being_removed(database: Database, tmp_path: Path) -> None:
    large = PausedStore(tmp_path / "blobs")
    world = world_over(database, large, tmp_path)
    writer = await TreeWriter.start(database)
    name = await world.put(LARGE)
    collecting = asyncio.create_task(world.collect())
    await large.reached.wait()
    with pytest.raises(BlobMissing):
        await writer.commit([writer.write("a", name, size=len(LARGE))])
    large.go_on.set()
    await collecting


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["inline", "local"])
@pytest.mark.parametrize("bytes_gone", [True, False])
async def test_a_collection_that_died_half_way_is_picked_up_by_a_put_and_by_the_next_run(
    world: World, content: bytes, bytes_gone: bool
) -> None:
    revived, removed = await world.put(content), await world.put(content + b"!")
    async with world.database.connection() as connection:
        await connection.execute("UPDATE blobs SET live = false")
    if bytes_gone:
        await world.store.delete(revived)
    assert await world.put(content) == revived
    assert (await world.collect(timedelta(hours=1))).blobs == 1
    assert await world.store.verify(revived) == len(content)
    assert not await world.store.exists(removed)


async def test_bytes_whose_put_died_before_the_row_are_collected_when_old(world: World) -> None:
    stray = await world.large.put(in_pieces(LARGE))
    assert (await world.collect(timedelta(hours=1))).blobs == 0
    assert (await world.collect()).blobs == 1
    assert not await world.large.exists(stray.hash)


@pytest.mark.parametrize("content", [SMALL, LARGE], ids=["inline", "local"])
async def test_puts_and_commits_of_one_content_race_with_collections_and_lose_nothing(
    world: World, content: bytes
) -> None:
    """With no grace at all a blob may go between its put and its commit: then the commit is refused, never hollow."""
    stop = asyncio.Event()

    async def collect() -> int:
        removed = 0
        while not stop.is_set():
            removed += (await world.collect()).blobs
        return removed + (await world.collect()).blobs

    async def write(index: int) -> int:
        writer, committed = await TreeWriter.start(world.database, f"racer{index}"), 0
        for _ in range(200):
            if committed == 6:
                break
            name = await world.put(content)
            version = writer.write(f"file{new_uuid().hex}", name, size=len(content))
            try:
                await writer.commit([version])
            except BlobMissing:
                continue
            committed += 1
            assert await world.store.verify(name) == len(content)
            async with world.database.transaction() as connection:  # forget it, so that it is garbage again
                await connection.execute("DELETE FROM versions WHERE node_id = $1", version.node_id)
        return committed

    collecting = asyncio.create_task(collect())
    committed = await asyncio.gather(*(write(index) for index in range(4)))
    stop.set()
    assert await collecting > 0
    assert committed == [6, 6, 6, 6]


async def test_many_who_put_the_same_new_content_at_the_same_moment_all_succeed(world: World) -> None:
    for index in range(100):
        content = b"new %d" % index
        assert set(await asyncio.gather(*(world.put(content) for _ in range(8)))) == {ContentHash.of(content)}
