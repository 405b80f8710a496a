"""fsck finds each kind of damage and names it; on sound data it finds nothing."""

import errno
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
from tests.support.tree_writer import TEST_AUDIT_KEY, TreeWriter, in_pieces

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Database
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import SystemClock
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.fsck import Fsck, FsckProblem

LARGE = b"large" * 1000


@dataclass
class World:
    database: Database
    large: LocalBlobStore
    fsck: Fsck

    async def problems(self) -> list[FsckProblem]:
        return [step.problem async for step in self.fsck.run() if step.problem]

    async def behind_its_back(self, *statements: str) -> None:
        """Change rows as a stranger with the superuser's rights would: no triggers, no foreign keys."""
        async with self.database.transaction() as connection:
            await connection.execute("SET LOCAL session_replication_role = replica")
            for statement in statements:
                await connection.execute(statement)


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> World:
    """A project with two files, one of them changed once, over both tiers."""
    large, spool = LocalBlobStore(tmp_path / "blobs"), SpoolFolder(tmp_path / "spool")
    catalog = BlobCatalog(database=database, small=InlineBlobStore(database), large=large, limit=1000, spool=spool)
    writer = await TreeWriter.start(database, "demo")
    small, big = await writer.put(catalog, b"small"), await writer.put(catalog, LARGE)
    await writer.commit([writer.write("docs/a", small[0], size=small[1])])
    await writer.commit([writer.write("docs/a", big[0], size=big[1]), writer.write("b", small[0], size=small[1])])
    return World(
        database=database,
        large=large,
        fsck=Fsck(database=database, store=catalog.store, audit=AuditRepository(TEST_AUDIT_KEY)),
    )


async def test_sound_data_has_no_problems(world: World) -> None:
    assert await world.problems() == []


def sql(*statements: str) -> Callable[[World], Awaitable[None]]:
    return lambda world: world.behind_its_back(*statements)


async def _lose_object(world: World) -> None:
    [blob] = [blob async for blob in world.large.list()]
    await world.large.delete(blob.hash)


async def _alter_object(world: World) -> None:
    [blob] = [blob async for blob in world.large.list()]
    path = world.large.path(blob.hash)
    path.unlink()
    path.write_bytes(LARGE[:-1] + b"X")


async def _cut_object(world: World) -> None:
    [blob] = [blob async for blob in world.large.list()]
    path = world.large.path(blob.hash)
    path.unlink()
    path.write_bytes(LARGE[:100])


async def _remove_system_chain(world: World) -> None:
    audit = AuditRepository(TEST_AUDIT_KEY)
    identity = IdentityService(
        database=world.database, repository=IdentityRepository(), audit=audit, clock=SystemClock()
    )
    await identity.ensure_owner(None)
    assert await world.problems() == []
    await world.behind_its_back(
        "DELETE FROM audit WHERE chain NOT IN (SELECT id FROM projects)",
        "DELETE FROM audit_heads WHERE chain NOT IN (SELECT id FROM projects)",
    )


DAMAGE: dict[str, tuple[Callable[[World], Awaitable[None]], str, str]] = {
    "a commit removed": (sql("DELETE FROM commits WHERE seq = 1"), "C2", "head is 2"),
    "the head moved back": (sql("UPDATE projects SET head = 1"), "C2", "head is 1"),
    "a version removed": (sql("DELETE FROM versions WHERE number = 1 AND path = 'docs/a'"), "C3", "chain"),
    "an interval changed": (sql("UPDATE versions SET replaced_seq = 9 WHERE replaced_seq = 2"), "C3", "chain"),
    "two nodes at a path": (
        sql(
            "DROP INDEX versions_one_node_per_path",
            "UPDATE versions SET path = 'b' WHERE path = 'docs/a' AND number = 2",
        ),
        "C3",
        "two nodes",
    ),
    "a file below a file": (sql("UPDATE versions SET path = 'b/c' WHERE path = 'docs/a'"), "C3", "lies below"),
    "a node removed": (sql("DELETE FROM nodes"), "C3", "has no node"),
    "a node's versions all removed": (sql("DELETE FROM versions WHERE path = 'b'"), "C3", "has no version"),
    "a side version's blob removed": (
        sql(
            "INSERT INTO side_versions (project_id, id, seq, node_id, path, reason, kind, content_hash, size) "
            "SELECT project_id, node_id, seq, node_id, path, 'superseded', 'file', sha256('lost'), 4 "
            "FROM versions WHERE path = 'b'"
        ),
        "C3",
        "side version",
    ),
    "a blob row removed": (sql("DELETE FROM blobs WHERE size = 5"), "C3", "not recorded"),
    "another size": (sql("UPDATE versions SET size = 6 WHERE size = 5"), "C3", "another size"),
    "an audit row altered": (sql("UPDATE audit SET summary = 'Nothing.' WHERE number = 2"), "C8", "row 2 was altered"),
    "an audit row removed": (sql("DELETE FROM audit WHERE number = 2"), "C8", "row 2 is missing"),
    "the audit's tail cut off": (sql("DELETE FROM audit WHERE number = 3"), "C8", "ends at 2"),
    "the tail cut off and the head set back": (
        sql(
            "UPDATE audit_heads h SET number = 2, mac = a.mac FROM audit a WHERE a.chain = h.chain AND a.number = 2",
            "DELETE FROM audit WHERE number = 3",
        ),
        "C8",
        "seal",
    ),
    "a project's whole audit chain removed": (
        sql("DELETE FROM audit", "DELETE FROM audit_heads"),
        "C8",
        "its audit chain was removed",
    ),
    "a whole project removed": (sql("DELETE FROM projects"), "C8", "has an audit chain, but was removed"),
    "the system's whole audit chain removed": (_remove_system_chain, "C8", "made without an audit row"),
    "an inline blob altered": (
        sql(
            "ALTER TABLE blob_contents DROP CONSTRAINT blob_contents_hash_to_their_name",
            "UPDATE blob_contents SET content = 'smalL'",
        ),
        "blob",
        "do not hash",
    ),
    "an inline blob removed": (sql("DELETE FROM blob_contents"), "blob", "no blob"),
    "an object removed": (_lose_object, "blob", "no blob"),
    "an object altered": (_alter_object, "blob", "do not hash"),
    "an object cut short": (_cut_object, "blob", ""),
}


@pytest.mark.parametrize(("damage", "rule", "words"), DAMAGE.values(), ids=DAMAGE.keys())
async def test_damage_is_found_and_named(
    world: World, damage: Callable[[World], Awaitable[None]], rule: str, words: str
) -> None:
    await damage(world)
    problems = await world.problems()
    assert any(problem.rule == rule and words in problem.message for problem in problems), problems


async def test_a_blob_the_disk_does_not_give_back_is_named_and_the_others_are_checked(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> bytes:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    [blob] = [blob async for blob in world.large.list()]
    await world.behind_its_back("DELETE FROM blob_contents")
    monkeypatch.setattr(os, "pread", fail)
    found = {problem.where: problem.message for problem in await world.problems()}
    assert len(found) == 2
    assert "Input/output error" in found[str(blob.hash)]


async def test_the_schema_itself_refuses_most_of_it(world: World) -> None:
    """Without the superuser's bypass, the constraints hold C2, C3 and C8."""
    refused = 0
    for statement in (
        "DELETE FROM commits WHERE seq = 1",
        """INSERT INTO commits (project_id, seq, id, principal_id, operator_type)
           SELECT gen_random_uuid(), 1, gen_random_uuid(), id, 'api' FROM principals""",
        "DELETE FROM projects",
        "UPDATE projects SET head = 7",
        "DELETE FROM versions WHERE number = 1 AND path = 'docs/a'",
        "UPDATE versions SET path = 'b' WHERE path = 'docs/a'",
        "DELETE FROM nodes",
        "DELETE FROM blobs WHERE size = 5",
        "UPDATE blobs SET live = false",
        "UPDATE audit SET summary = 'Nothing.'",
        "DELETE FROM audit",
        "TRUNCATE audit",
        "UPDATE blob_contents SET content = 'smalL'",
    ):
        try:
            async with world.database.transaction() as connection:
                await connection.execute(statement)
        except Exception:  # noqa: BLE001 - any refusal of the database's will do; the count says that each was refused
            refused += 1
    assert refused == 13
    assert await world.problems() == []


async def test_progress_counts_every_blob(world: World) -> None:
    steps = [step async for step in world.fsck.run()]
    assert [(step.done, step.total) for step in steps if step.stage == "blobs"] == [(1, 2), (2, 2)]
    assert {step.stage for step in steps} == {"commits", "versions", "events", "audit", "blobs"}


async def test_writers_at_work_are_not_taken_for_damage(world: World) -> None:
    """Every check reads one snapshot: commits that arrive while it runs do not look like gaps."""
    writer = await TreeWriter.start(world.database, "busy")
    content_hash, size = (await world.large.put(in_pieces(LARGE))).hash, len(LARGE)
    problems = []
    async for step in world.fsck.run():
        await writer.commit([writer.write("a", content_hash, size=size)])
        problems.append(step.problem)
    assert [problem for problem in problems if problem] == []
