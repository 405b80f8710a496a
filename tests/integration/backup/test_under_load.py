"""A backup made while others write is one moment of it all, and is restored as that moment."""

import asyncio
from pathlib import Path

import pytest
from tests.support.backups import LARGE, System, filled, opened_system, place, restored, s3_settings
from tests.support.gate_world import delete, rename, write

from contextbase.backup import verify_backup
from contextbase.backup.manifest import Manifest
from contextbase.db.database import DatabaseAddress
from contextbase.ids import ProjectId
from contextbase.storage.blobs.s3_connection import S3Connection

AGENTS = 8


async def _write_until(
    done: asyncio.Event, turns: asyncio.Semaphore, system: System, projects: list[ProjectId], number: int
) -> None:
    """Files of its own and a shared one, small and large, renamed and deleted."""
    agent = await system.agent(f"agent-{number}")
    for turn in range(10_000):
        if done.is_set():
            return
        project = projects[turn % len(projects)]
        text = f"{number} {turn}\n".encode()
        seq = (await system.commit(project, write(f"own/{number}/{turn}", text, 0), who=agent)).seq
        changes = [write("shared.txt", text, seq), write(f"large/{number}", text + LARGE, seq)]
        if turn % 3 == 0:
            changes.append(rename(f"own/{number}/{turn}", f"moved/{number}/{turn}", seq))
        elif turn % 3 == 1:
            changes.append(delete(f"own/{number}/{turn}", seq))
        await system.commit(project, *changes, who=agent)
        turns.release()
    raise AssertionError("the backup did not end")


async def _heads(system: System) -> int:
    async with system.services.database.connection() as connection:
        total: int = await connection.fetchval("SELECT sum(head) FROM projects")
    return total


async def _backed_up_under_load(system: System, target: Path) -> Manifest:
    projects = [(await filled(system, name)).id for name in ("first", "second", "third")]
    done, turns = asyncio.Event(), asyncio.Semaphore(0)
    writers = [asyncio.create_task(_write_until(done, turns, system, projects, number)) for number in range(AGENTS)]
    try:
        await asyncio.gather(*(turns.acquire() for _ in range(50)))
        before = await _heads(system)
        manifest = await system.back_up(target)
        assert await _heads(system) > before, "nobody wrote meanwhile"
    finally:
        done.set()
        await asyncio.gather(*writers)
    assert await _heads(system) > sum(project.head for project in manifest.projects) >= before
    return manifest


async def _assert_is_that_moment(copy: System, original: System, manifest: Manifest) -> None:
    assert await copy.problems() == []
    for record in manifest.projects:
        project_id = ProjectId(record.id)
        found = await copy.services.projects.find(copy.owner, record.name)
        assert (found.id, found.head) == (record.id, record.head)
        assert found.epoch != record.epoch
        for seq in range(0, record.head + 1, max(1, record.head // 5)):
            assert await copy.tree(project_id, seq) == await original.tree(project_id, seq)
        assert await copy.tree(project_id, record.head) == await original.tree(project_id, record.head)
    assert len(manifest.audit_anchors) == len(manifest.projects) + 1
    for anchor in manifest.audit_anchors:
        for system in (copy, original):
            async with system.services.database.connection() as connection:
                mac = await connection.fetchval(
                    "SELECT mac FROM audit WHERE chain = $1 AND number = $2", anchor.chain, anchor.number
                )
            assert mac.hex() == anchor.mac


async def test_what_is_restored_is_the_moment_that_the_manifest_names(
    system: System, target: Path, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    manifest = await _backed_up_under_load(system, target)
    assert (await verify_backup(target)).problems == ()
    async with place(embedded_database_server, tmp_path / "elsewhere") as found:
        await restored(found.settings, target)
        async with opened_system(found.settings) as copy:
            await _assert_is_that_moment(copy, system, manifest)


async def test_a_backup_is_restored_into_another_blob_store_and_another_kind_of_database(
    system: System,
    target: Path,
    external_database_server: DatabaseAddress,
    s3_connection: S3Connection,
    tmp_path: Path,
) -> None:
    manifest = await _backed_up_under_load(system, target)
    async with place(external_database_server, tmp_path / "elsewhere", **s3_settings(s3_connection)) as found:
        await restored(found.settings, target)
        async with opened_system(found.settings) as copy:
            await _assert_is_that_moment(copy, system, manifest)
            assert {blob.hash async for blob in copy.services.large_blobs.list()}
            again = await copy.back_up(tmp_path / "again")  # and from S3 back to a folder
            assert (again.blobs.count, again.blobs.bytes) == (manifest.blobs.count, manifest.blobs.bytes)
    assert (await verify_backup(tmp_path / "again")).problems == ()


async def test_the_next_backup_into_a_folder_adds_only_the_blobs_that_are_new(system: System, tmp_path: Path) -> None:
    project = await filled(system)
    first = await system.services.backups.create(tmp_path / "backups")
    assert (first.new_blobs, first.new_bytes) == (2, 2 * len(LARGE))
    await system.commit(project.id, write("other.bin", LARGE + b"more", 0))
    second = await system.services.backups.create(tmp_path / "backups")
    assert (second.new_blobs, second.manifest.blobs.count) == (1, 3)
    for made in (first, second):
        assert (await verify_backup(tmp_path / "backups", snapshot=made.manifest.snapshot)).problems == ()


@pytest.mark.parametrize("target", ["backup.tar"], indirect=True)
async def test_an_unpacked_tar_is_a_backup_folder(
    system: System, target: Path, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    project = await filled(system)
    manifest = await system.back_up(target)
    process = await asyncio.create_subprocess_exec("tar", "-xf", str(target), "-C", str(tmp_path))
    assert await process.wait() == 0
    assert (tmp_path / "snapshots" / manifest.snapshot / "audit.key").stat().st_mode & 0o777 == 0o600
    async with place(embedded_database_server, tmp_path / "elsewhere") as found:
        await restored(found.settings, tmp_path)
        async with opened_system(found.settings) as copy:
            head = manifest.projects[0].head
            assert await copy.tree(project.id, head) == await system.tree(project.id, head)
