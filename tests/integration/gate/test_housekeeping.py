"""What the gate keeps for a while only: uploads and answers."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

from tests.support.gate_world import GateWorld, write

from contextbase.db.database import Database
from contextbase.gate.retention import Forgotten, Housekeeping
from contextbase.ids import SystemClock
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.collector import GarbageCollector


async def stream(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def test_an_upload_is_safe_from_collection_until_it_is_forgotten(database: Database, tmp_path: Path) -> None:
    world = await GateWorld.start(database, tmp_path)
    blob = await world.gate.upload(world.owner, world.project.id, stream(b"later"))
    collector = GarbageCollector(
        database=database, store=world.catalog.store, spool=SpoolFolder(tmp_path / "spool"), clock=SystemClock()
    )
    housekeeping = Housekeeping(database=database, clock=SystemClock())
    assert (await collector.run(grace=timedelta(0))).blobs == 0
    assert await housekeeping.run(uploads_kept=timedelta(hours=1)) == Forgotten(answers=0, uploads=0)
    assert await housekeeping.run(uploads_kept=timedelta(0)) == Forgotten(answers=0, uploads=1)
    assert (await collector.run(grace=timedelta(0))).blobs == 1
    assert not await world.catalog.store.exists(blob.hash)


async def test_answers_are_kept_for_a_week(database: Database, tmp_path: Path) -> None:
    world = await GateWorld.start(database, tmp_path)
    await world.commit(write("a", b"1", 0), key="old")
    await world.commit(write("b", b"1", 1), key="new")
    async with database.transaction() as connection:
        await connection.execute(
            "UPDATE answered_requests SET answered_at = clock_timestamp() - interval '8 days' WHERE key = 'old'"
        )
    forgotten = await Housekeeping(database=database, clock=SystemClock()).run(uploads_kept=timedelta(hours=1))
    assert forgotten == Forgotten(answers=1, uploads=0)
    again = await world.commit(write("b", b"1", 1), key="new")
    assert again.seq == 2
