"""Commits of contents that are too large for the database, while the blob store works and while it does not."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.gate_world import GateWorld, rename, write
from tests.support.proxy import Misbehaviour, misbehaving_proxy

from contextbase.db.database import Database
from contextbase.errors import BlobStoreUnavailable, TooBusy
from contextbase.gate.large_contents import LargeContents
from contextbase.gate.model import ChangeStatus, CommitAnswer
from contextbase.ids import ContentHash, SystemClock
from contextbase.storage.blobs.s3 import S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.collector import GarbageCollector


def large(name: object) -> bytes:
    """Text of 300 KB: over the limit."""
    return b"".join(b"%s: line %d of a text that is rather long\n" % (str(name).encode(), n) for n in range(7_500))


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> GateWorld:
    return await GateWorld.start(database, tmp_path)


async def test_requests_that_are_sent_again_with_large_contents_get_their_first_answer(world: GateWorld) -> None:
    first = await world.commit(write("a", large("a"), 0), key="a")
    twins = [world.commit(write("b", large("b"), 0), key="b") for _ in range(3)]
    again, other, *same = await asyncio.gather(
        world.commit(write("a", large("a"), 0), key="a"), world.commit(write("c", large("c"), 0), key="c"), *twins
    )
    assert again == first
    assert other.committed
    assert same[0] == same[1] == same[2]
    assert set(await world.files()) == {"a", "b", "c"}
    assert await world.problems() == []


async def test_a_large_content_lands_after_a_change_of_the_policy(world: GateWorld) -> None:
    await world.commit(write("small", b"x", 0))
    await world.rule("elsewhere/**", "R")
    made = await world.commit(write("a", large("a"), 0), write("b", b"small", 0))
    assert [change.status for change in made.changes] == [ChangeStatus.WRITTEN] * 2


async def test_servers_that_write_large_contents_to_one_project_all_land(
    world: GateWorld, database: Database, tmp_path: Path
) -> None:
    other = await GateWorld.start(database, tmp_path, project_name=world.project.name)
    await world.commit(write("shared.txt", large("shared"), 0))

    async def agent(server: GateWorld, number: int) -> None:
        for turn in range(3):
            name = f"{number}-{turn}"
            line, rest = f"{name}\n".encode(), large("shared")
            mine = line + rest if number % 2 else rest + line
            made = await server.commit(write(name, large(name), 0), write("shared.txt", mine, 1), key=name)
            assert made.changes[0].status is ChangeStatus.WRITTEN
            assert made.changes[1].status in (ChangeStatus.WRITTEN, ChangeStatus.MERGED, ChangeStatus.IN_REVIEW)

    await asyncio.gather(*(agent(server, number) for number, server in enumerate((world, other) * 3)))
    assert len(await world.files()) == 1 + 6 * 3
    assert await world.problems() == []


async def test_large_contents_are_stored_only_where_the_writer_may_write(world: GateWorld) -> None:
    agent = await world.agent("agent")
    await world.rule("secret/**", "hidden", agent)
    await world.rule("locked/**", "R", agent)
    made = await world.commit(
        write("secret/a", large("a"), 0), write("locked/b", large("b"), 0), write("c", large("c"), 0), who=agent
    )
    assert [change.status for change in made.changes] == [
        ChangeStatus.REFUSED, ChangeStatus.REFUSED, ChangeStatus.WRITTEN
    ]  # fmt: skip
    stored = [blob.hash async for blob in world.catalog.store.list()]
    assert ContentHash.of(large("c")) in stored
    assert ContentHash.of(large("a")) not in stored
    assert ContentHash.of(large("b")) not in stored


async def test_what_was_collected_between_storing_and_landing_is_stored_again(
    world: GateWorld, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    collector = GarbageCollector(
        database=world.database, store=world.catalog.store, spool=SpoolFolder(tmp_path), clock=SystemClock()
    )
    store_ahead = LargeContents.store_ahead

    async def and_collect(self: LargeContents, *arguments: object) -> None:
        await store_ahead(self, *arguments)  # type: ignore[arg-type]  # forwarded
        await collector.run(grace=timedelta(seconds=-60))

    monkeypatch.setattr(LargeContents, "store_ahead", and_collect)
    made = await world.commit(write("a", large("a"), 0))
    assert made.changes[0].status is ChangeStatus.WRITTEN
    assert await world.files() == {"a": large("a")}
    assert await world.problems() == []


@asynccontextmanager
async def world_on_s3(
    database: Database, folder: Path, connection: S3Connection, **patience: float
) -> AsyncIterator[tuple[GateWorld, asyncio.Event]]:
    """A gate whose blobs are in S3, and what to clear to make that hang."""
    answers = asyncio.Event()
    answers.set()
    async with misbehaving_proxy(connection.endpoint, Misbehaviour(may_answer=answers)) as address:
        blobs = S3BlobStore(replace(connection, endpoint=address), spool=SpoolFolder(folder / "spool"))
        yield await GateWorld.start(database, folder, blobs=blobs, **patience), answers


async def test_a_store_that_hangs_holds_up_nobody_but_the_request_that_brings_large_content(
    embedded_database: Database, tmp_path: Path, s3_connection: S3Connection
) -> None:
    async with world_on_s3(embedded_database, tmp_path, s3_connection) as (world, answers):
        await world.commit(write("before", large("before"), 0))
        answers.clear()
        waiting = [asyncio.create_task(world.commit(write(f"large-{n}", large(n), 0))) for n in range(3)]
        for number in range(20):
            made = await world.commit(write(f"small-{number}", b"x", 0))
            assert made.changes[0].status is ChangeStatus.WRITTEN
        assert not any(task.done() for task in waiting)
        answers.set()
        assert all(made.committed for made in await asyncio.gather(*waiting))
        assert await world.problems() == []


async def test_a_request_whose_large_content_cannot_be_stored_fails_and_can_be_sent_again(
    embedded_database: Database, tmp_path: Path, s3_connection: S3Connection
) -> None:
    async with world_on_s3(embedded_database, tmp_path, s3_connection, ahead_seconds=0.5) as (world, answers):
        answers.clear()
        with pytest.raises(BlobStoreUnavailable):
            await world.commit(write("a", large("a"), 0), key="a")
        assert (await world.commit(write("small", b"x", 0))).committed
        answers.set()
        assert (await world.commit(write("a", large("a"), 0), key="a")).committed


async def test_a_merge_that_needs_a_store_that_hangs_fails_alone(
    embedded_database: Database, tmp_path: Path, s3_connection: S3Connection
) -> None:
    """A small change of a large file: what it meets has to be read, and what the merge makes to be stored."""
    patience = {"turn_seconds": 0.5, "pause_seconds": 3600.0}
    async with world_on_s3(embedded_database, tmp_path, s3_connection, **patience) as (world, answers):
        await world.commit(write("a", large("a"), 0))
        await world.commit(write("a", b"first\n" + large("a"), 1))
        await world.commit(write("before", b"x", 2))
        await world.upload(large("a") + b"last\n")
        answers.clear()
        change = write("a", large("a") + b"last\n", 1)
        assert change.content is not None
        named = replace(change, content=replace(change.content, inline=None))
        late, *others = await asyncio.gather(
            world.commit(named, key="late"),
            *(world.commit(write(f"small-{number}", b"x", 0)) for number in range(10)),
            return_exceptions=True,
        )
        assert isinstance(late, BlobStoreUnavailable)
        assert all(isinstance(other, CommitAnswer) and other.committed for other in others)
        with pytest.raises(BlobStoreUnavailable):  # at once: nobody waits again for a store that did not answer
            await world.commit(named, key="late")
        assert (await world.commit(rename("before", "moved", 3))).committed
        answers.set()
        fresh = await GateWorld.start(embedded_database, tmp_path, project_name=world.project.name, blobs=world.blobs)
        assert (await fresh.commit(named, key="late")).changes[0].status is ChangeStatus.MERGED
        assert await world.problems() == []


async def test_contents_that_wait_to_be_stored_take_a_bounded_amount_of_memory(
    embedded_database: Database, tmp_path: Path, s3_connection: S3Connection
) -> None:
    async with world_on_s3(embedded_database, tmp_path, s3_connection) as (world, answers):
        contents = LargeContents(world.catalog)
        owner, other = world.owner.principal.id, (await world.agent("other")).principal.id
        answers.clear()
        first = asyncio.create_task(contents.store_ahead(owner, {ContentHash.of(large(1)): large(1)}))
        await asyncio.sleep(0)
        more = bytes(64 << 20)
        with pytest.raises(TooBusy):
            await contents.store_ahead(owner, {ContentHash.of(more): more})
        second = asyncio.create_task(contents.store_ahead(other, {ContentHash.of(large(2)): large(2)}))
        answers.set()
        await asyncio.gather(first, second)
