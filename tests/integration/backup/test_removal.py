"""Blobs stay while a backup runs: the collector waits its turn, and so does the backup."""

import asyncio
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.backups import LARGE, System, filled
from tests.support.tree_writer import in_pieces

from contextbase.backup import verify_backup
from contextbase.db.database import Database
from contextbase.errors import Conflict, DatabaseUnavailable
from contextbase.history.purge import PurgeWanted
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.blobs import removal
from contextbase.storage.blobs.removal import blobs_kept, hold_for_removal

NO_GRACE = timedelta(0)


@pytest.fixture(autouse=True)
def _little_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(removal, "_TRIES", 3)


async def test_the_collector_removes_nothing_while_a_backup_runs(system: System) -> None:
    await filled(system)
    blob = await system.services.catalog.put(in_pieces(b"of nobody" + LARGE))
    database, collector = system.services.database, system.services.collector
    async with blobs_kept(database), blobs_kept(database):
        with pytest.raises(Conflict, match="backup is running"):
            await collector.run(grace=NO_GRACE)
        assert await system.services.catalog.store.exists(blob.hash)
        assert (await collector.run(grace=NO_GRACE, dry_run=True)).blobs == 1
    assert (await collector.run(grace=NO_GRACE)).blobs == 1
    assert not await system.services.catalog.store.exists(blob.hash)


async def test_a_purge_is_refused_while_a_backup_runs_and_before_it_did_anything(system: System) -> None:
    project = await filled(system)
    purge, wanted = system.services.purge, PurgeWanted(path=TreePath("large.bin"))

    async def do_purge() -> None:
        await purge.purge(system.owner, project.id, wanted, confirm="notes")

    before = await system.tree(project.id, 100)
    async with blobs_kept(system.services.database):
        with pytest.raises(Conflict, match="backup is running"):
            await do_purge()
        with pytest.raises(Conflict, match="backup is running"):
            await system.services.catalog.purge([ContentHash.of(LARGE)])
    assert await system.tree(project.id, 100) == before
    await do_purge()
    assert not await system.services.large_blobs.exists(ContentHash.of(LARGE))
    async with system.services.database.transaction() as connection:  # another one, that dies half-way
        await system.services.catalog.bury(connection, [ContentHash.of(b"two\n")], [project.id])
    async with blobs_kept(system.services.database):
        with pytest.raises(Conflict, match="backup is running"):  # GC finishes purges
            await system.services.collector.run(grace=NO_GRACE)


async def test_a_backup_waits_for_a_removal_that_is_under_way(system: System, tmp_path: Path) -> None:
    await filled(system)
    async with system.services.database.session() as connection:
        await hold_for_removal(connection)
        backing_up = asyncio.create_task(system.back_up(tmp_path / "backups"))
        done, _ = await asyncio.wait({backing_up}, timeout=0.5)
        assert not done
    await backing_up
    assert (await verify_backup(tmp_path / "backups")).problems == ()


async def test_a_backup_whose_hold_was_lost_does_not_count(
    system: System, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(system)
    get = system.services.large_blobs.get

    async def end_the_hold() -> None:
        async with system.services.database.connection() as connection:
            await connection.execute(
                """SELECT pg_terminate_backend(pid) FROM pg_locks
                   WHERE locktype = 'advisory' AND objsubid = 2 AND pid <> pg_backend_pid()
                     AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"""
            )

    async def get_after_that(*arguments: object, **options: object) -> object:
        await end_the_hold()
        async for piece in get(*arguments, **options):  # type: ignore[arg-type]  # forwarded
            yield piece

    monkeypatch.setattr(system.services.large_blobs, "get", get_after_that)
    with pytest.raises(DatabaseUnavailable):
        await system.back_up(tmp_path / "backups")
    assert list((tmp_path / "backups" / "snapshots").iterdir()) == []


async def test_removals_take_turns_and_wait_for_each_other(embedded_database: Database) -> None:
    async with embedded_database.session() as first:
        await hold_for_removal(first)
        async with embedded_database.session() as second:
            with pytest.raises(Conflict):
                await hold_for_removal(second)
    async with embedded_database.session() as third:
        await hold_for_removal(third)
