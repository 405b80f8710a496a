"""A leaked secret leaves all history."""

import json
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from typing import Any

import asyncpg
import pytest
from tests.support.feed_world import FeedWorld
from tests.support.gate_world import GateWorld, delete, write
from tests.support.search_world import SearchWorld
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, ContentPurged, Forbidden, InvalidInput, NotFound
from contextbase.gate.model import ChangeAction, ChangeStatus, Content, RequestedChange
from contextbase.history.purge import Purge, PurgeAnswer, PurgeWanted
from contextbase.ids import ContentHash, Seq, SystemClock, TreePath
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.collector import GarbageCollector
from contextbase.storage.projects import ProjectService
from contextbase.streams.model import NewEvent
from contextbase.streams.repository import encoded

SECRET = b"password = hunter2\n"


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> GateWorld:
    return await GateWorld.start(database, tmp_path, limit=64)


def purging(world: GateWorld) -> Purge:
    audit = AuditRepository(TEST_AUDIT_KEY)
    return Purge(
        database=world.database, gate=world.gate, catalog=world.catalog, audit=audit, clock=SystemClock(),
        projects=ProjectService(database=world.database, audit=audit, clock=SystemClock()),
        derived=SearchWorld.over(world).indexer,
    )  # fmt: skip


async def purge(world: GateWorld, path: str | None = None, content: bytes | None = None, **more: str) -> PurgeAnswer:
    wanted = PurgeWanted(
        path=None if path is None else TreePath(path), content=None if content is None else ContentHash.of(content)
    )
    confirm = more.get("confirm", world.project.name)
    return await purging(world).purge(world.owner, world.project.id, wanted, confirm=confirm)


async def everything_stored(world: GateWorld) -> str:
    """All that the database and the blob folder hold, as text."""
    async with world.database.connection() as connection:
        tables = [
            "blob_contents", "review_items", "answered_requests", "side_versions", "versions", "audit",
            "stream_events", "uploads",
        ]  # fmt: skip
        rows = [await connection.fetch(f"SELECT t.*::text AS row FROM {table} t") for table in tables]  # noqa: S608 - the test's own names
        contents = [row["content"] for row in await connection.fetch("SELECT content FROM blob_contents")]
    stored = [blob.hash async for blob in world.catalog.store.list()]
    large = [await world.catalog.read(name) for name in stored]
    return "".join(row["row"] for table in rows for row in table) + b"".join([*contents, *large]).decode("latin-1")


@pytest.mark.parametrize("secret", [SECRET, SECRET * 10], ids=["small", "large"])
async def test_a_file_that_leaked_is_gone_from_all_versions_and_copies(world: GateWorld, secret: bytes) -> None:
    await world.commit(write("conf", b"start\n", 0))
    await world.commit(write("conf", secret, 1), key="leak")
    await world.commit(write("conf", b"other " + secret, 1), key="contested")  # a review item holds it too
    await world.commit(write("conf", b"mended\n", 2))
    answer = await purge(world, "conf")
    assert [path for _, path in answer.deleted] == ["conf"]
    assert "hunter2" not in await everything_stored(world)
    assert await world.files() == {}
    assert await world.problems() == []
    with pytest.raises(ContentPurged):
        await world.catalog.read(ContentHash.of(secret))


async def test_a_purge_that_gave_way_to_a_deadlock_is_made_again(
    world: GateWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    bury, calls = BlobCatalog.bury, 0

    async def gives_way_once(self: BlobCatalog, connection: Connection, *what: Any) -> None:
        nonlocal calls
        calls += 1
        if calls == 1:
            raise asyncpg.DeadlockDetectedError("deadlock detected")
        await bury(self, connection, *what)

    await world.commit(write("conf", SECRET, 0))
    monkeypatch.setattr(BlobCatalog, "bury", gives_way_once)
    await purge(world, "conf")
    assert calls == 2
    assert "hunter2" not in await everything_stored(world)
    assert await world.problems() == []


async def test_one_content_goes_and_other_versions_stay(world: GateWorld) -> None:
    await world.commit(write("conf", SECRET, 0))
    await world.commit(write("conf", b"mended\n", 1))
    answer = await purge(world, content=SECRET)
    assert answer.deleted == ()
    assert await world.files() == {"conf": b"mended\n"}
    assert await world.problems() == []


async def test_a_purge_is_told_in_each_projects_trail_as_far_as_it_is_about_that_project(
    world: GateWorld, tmp_path: Path
) -> None:
    other = await GateWorld.start(world.database, tmp_path / "other")
    await world.commit(write("keys/prod", SECRET, 0), write("keys/test", b"hunter3", 0))
    await other.commit(write("copy", SECRET, 0))
    await purge(world, "keys")
    async with world.database.connection() as connection:
        rows = await connection.fetch("SELECT chain, path, details FROM audit WHERE action = 'purge'")
    told = {row["chain"]: (row["path"], json.loads(row["details"])["contents"]) for row in rows}
    names = {content: str(ContentHash.of(content)) for content in (SECRET, b"hunter3")}
    assert told == {
        world.project.id: ("keys", sorted(names.values())),
        other.project.id: (None, [names[SECRET]]),
    }


async def test_what_was_purged_cannot_come_back(world: GateWorld) -> None:
    await world.commit(write("conf", SECRET, 0))
    await purge(world, "conf")
    with pytest.raises(ContentPurged):
        await world.commit(write("conf", SECRET, 2))
    named = Content(hash=ContentHash.of(SECRET), size=0)
    with pytest.raises(ContentPurged):
        await world.commit(RequestedChange(action=ChangeAction.WRITE, path=TreePath("b"), base=Seq(2), content=named))
    assert await world.files() == {}


async def versions_read(world: GateWorld) -> list[bytes | None]:
    """Every version's content, None for those that were purged."""
    async with world.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT content_hash FROM versions WHERE project_id = $1 AND content_hash IS NOT NULL ORDER BY seq",
            world.project.id,
        )
    read: list[bytes | None] = []
    for row in rows:
        try:
            read.append(await world.catalog.read(ContentHash(row["content_hash"])))
        except ContentPurged:
            read.append(None)
    return read


@pytest.mark.parametrize("secret", [SECRET, SECRET * 10], ids=["small", "large"])
async def test_purging_a_path_again_does_not_let_its_contents_come_back(world: GateWorld, secret: bytes) -> None:
    await world.commit(write("keys/a", secret, 0))
    first = await purge(world, "keys/a")
    again = await purge(world, "keys")
    assert again.contents == first.contents == (ContentHash.of(secret),)
    with pytest.raises(ContentPurged):
        await world.commit(write("b", secret, 2))


@pytest.mark.parametrize("by", ["path", "content"])
async def test_a_purge_that_left_the_bytes_is_finished_by_another(world: GateWorld, by: str) -> None:
    large = SECRET * 10
    await world.commit(write("conf", large, 0))
    await world.commit(write("conf", b"x", 1))
    async with world.database.transaction() as connection:
        await world.catalog.bury(connection, [ContentHash.of(large)], [world.project.id])
    await (purge(world, "conf") if by == "path" else purge(world, content=large))
    assert not await world.catalog.store.exists(ContentHash.of(large))


@pytest.mark.parametrize("secret", [SECRET, SECRET * 10], ids=["small", "large"])
async def test_another_project_stores_what_was_purged_like_any_content(
    world: GateWorld, tmp_path: Path, secret: bytes
) -> None:
    other = await GateWorld.start(world.database, tmp_path, limit=64)
    await world.commit(write("conf", secret, 0))
    await purge(world, "conf")
    answer = await other.one(write("mine", secret, 0))
    assert answer == replace(
        await other.one(write("else", b"new" * 50, 0)), path="mine", result_path="mine", node_id=answer.node_id
    )
    assert (await other.files())["mine"] == secret
    assert await versions_read(world) == [None]
    with pytest.raises(ContentPurged):
        await world.commit(write("conf", secret, 2))
    assert await other.problems() == []
    collector = GarbageCollector(
        database=world.database, store=world.catalog.store, spool=SpoolFolder(tmp_path / "gc"), clock=SystemClock()
    )
    await collector.run(grace=timedelta(0))
    assert (await other.files())["mine"] == secret
    assert await versions_read(world) == [None]


async def test_who_could_not_see_what_was_purged_stores_it_like_any_content(world: GateWorld) -> None:
    agent = await world.agent("bob")
    await world.rule("vault/**", "hidden", agent)
    await world.commit(write("vault/conf", SECRET, 0))
    await purge(world, "vault/conf")
    assert (await world.one(write("guess", SECRET, 2), agent)).status is ChangeStatus.WRITTEN
    named = Content(hash=ContentHash.of(b"never stored"), size=0)
    with pytest.raises(NotFound) as never:
        await world.commit(
            RequestedChange(action=ChangeAction.WRITE, path=TreePath("b"), base=Seq(2), content=named), who=agent
        )
    await world.commit(delete("guess", 3))
    await purge(world, "guess")
    await world.rule("guess", "hidden", agent)
    named = Content(hash=ContentHash.of(SECRET), size=0)
    with pytest.raises(NotFound) as purged:
        await world.commit(
            RequestedChange(action=ChangeAction.WRITE, path=TreePath("b"), base=Seq(2), content=named), who=agent
        )
    assert type(purged.value) is type(never.value)
    assert str(purged.value)[-40:] == str(never.value)[-40:]
    with pytest.raises(ContentPurged):
        await world.commit(write("conf", SECRET, 4))
    assert await versions_read(world) == [None, None]
    assert await world.problems() == []


async def test_the_name_of_what_was_purged_is_not_left_in_history(world: GateWorld) -> None:
    """The hash of a short secret is as good as the secret: whoever guesses it can tell."""
    await world.commit(write("conf", SECRET, 0))
    await world.commit(write("conf", b"mended\n", 1))
    await world.commit(write("conf", SECRET + b"more\n", 1))
    await purge(world, "conf")
    async with world.database.connection() as connection:
        for table in ("versions", "side_versions", "blobs", "blob_contents", "uploads"):
            rows = await connection.fetch(f"SELECT t::text AS row FROM {table} t")  # noqa: S608 - the test's own names
            assert not [row for row in rows if bytes(ContentHash.of(SECRET)).hex() in row["row"]], table


async def test_edits_made_from_what_was_purged_still_go_in(world: GateWorld) -> None:
    await world.commit(write("conf", SECRET, 0))
    await world.commit(write("conf", b"mended\n", 1))
    await purge(world, content=SECRET)
    answer = await world.one(write("conf", b"late\n", 1))
    assert answer.status is ChangeStatus.MERGED
    assert "purged" in answer.notes[0]
    assert await world.files() == {"conf": b"late\n"}


async def test_equal_contents_of_other_projects_go_too(world: GateWorld, tmp_path: Path) -> None:
    other = await GateWorld.start(world.database, tmp_path, limit=64)
    await other.commit(write("copy", SECRET, 0))
    await world.commit(write("conf", SECRET, 0))
    preview = await purging(world).preview(world.owner, world.project.id, PurgeWanted(path=TreePath("conf")))
    assert set(preview.projects) == {world.project.id, other.project.id}
    await purge(world, "conf")
    assert await other.files() == {}
    assert await world.problems() == []


async def test_empty_files_tell_nothing_and_stay(world: GateWorld, tmp_path: Path) -> None:
    other = await GateWorld.start(world.database, tmp_path, limit=64)
    await other.commit(write("package/__init__.py", b"", 0))
    await world.commit(write("conf", b"", 0))
    await world.commit(write("conf", SECRET, 1))
    await purge(world, "conf")
    assert await world.files() == {}
    assert await other.files() == {"package/__init__.py": b""}
    with pytest.raises(InvalidInput, match="nothing to purge"):
        await purge(world, content=b"")


async def test_a_purge_is_confirmed_by_name_and_for_administrators_of_everything(world: GateWorld) -> None:
    await world.commit(write("conf", SECRET, 0))
    with pytest.raises(InvalidInput):
        await purge(world, "conf", confirm="yes")
    with pytest.raises(NotFound):
        await purge(world, "elsewhere")
    limited = replace(world.owner, grant=replace(world.owner.grant, project_id=world.project.id))
    with pytest.raises(Forbidden):
        await purging(world).purge(
            limited, world.project.id, PurgeWanted(path=TreePath("conf")), confirm=world.project.name,
        )  # fmt: skip
    assert await world.files() == {"conf": SECRET}


async def test_gc_finishes_a_purge_that_died_half_way(world: GateWorld, tmp_path: Path) -> None:
    large = SECRET * 10
    await world.commit(write("conf", large, 0))
    await world.commit(write("conf", b"x", 1))
    async with world.database.transaction() as connection:
        await world.catalog.bury(connection, [ContentHash.of(large)], [world.project.id])
    assert await world.catalog.store.exists(ContentHash.of(large))
    collector = GarbageCollector(
        database=world.database, store=world.catalog.store, spool=SpoolFolder(tmp_path / "gc"), clock=SystemClock()
    )
    await collector.run(grace=timedelta(hours=1))
    assert not await world.catalog.store.exists(ContentHash.of(large))
    assert await world.problems() == []


async def test_what_stands_in_a_deleted_project_does_not_keep_a_secret(world: GateWorld, tmp_path: Path) -> None:
    await world.commit(write("a", SECRET, 0))
    other = await GateWorld.start(world.database, tmp_path)
    await other.commit(write("b", SECRET, 0))
    audit = AuditRepository(TEST_AUDIT_KEY)
    await ProjectService(database=world.database, audit=audit, clock=SystemClock()).delete(
        other.owner, other.project.id
    )
    await purge(world, "a")
    assert "hunter2" not in await everything_stored(world)
    assert await world.problems() == []


async def test_the_base_of_a_conflict_goes_also_where_another_file_has_its_place(world: GateWorld) -> None:
    leaked = b"x\n" + SECRET + b"y\n"
    await world.commit(write("a.txt", leaked, 0))
    await world.commit(delete("a.txt", 1))
    await world.commit(write("a.txt", b"x\nanother\ny\n", 2))
    assert (await world.one(write("a.txt", b"x\nmine\ny\n", 1))).status is ChangeStatus.IN_REVIEW
    assert "hunter2" in await everything_stored(world)
    await purge(world, content=leaked)
    assert "hunter2" not in await everything_stored(world)


async def test_a_critical_file_is_purged_too(world: GateWorld) -> None:
    await world.commit(write("prod.env", SECRET, 0))
    await world.merge_rule("prod.env", "critical")
    answer = await purge(world, "prod.env")
    assert answer.deleted == ((world.project.id, TreePath("prod.env")),)
    assert "hunter2" not in await everything_stored(world)


async def test_who_may_not_delete_a_file_is_told_so_and_nothing_is_purged(world: GateWorld) -> None:
    admin = await world.agent("admin")
    await world.commit(write("a", SECRET, 0))
    await world.rule("a", "R", admin)
    with pytest.raises(Forbidden, match="only read"):
        await purging(world).purge(
            admin, world.project.id, PurgeWanted(path=TreePath("a")), confirm=world.project.name,
        )  # fmt: skip
    assert await world.files() == {"a": SECRET}


async def test_a_content_that_an_event_has_as_its_body_is_not_said_to_be_written(
    database: Database, tmp_path: Path
) -> None:
    payload = {"text": "hunter2" * 2000}
    async with FeedWorld.opened(database, tmp_path) as feed:
        await feed.publish(NewEvent(kind="said", payload=payload))
        await feed.gate.commit(write("leaked", encoded(payload).encode(), 0))
        with pytest.raises(Conflict, match="stream_events"):
            await purge(feed.gate, "leaked")
        assert await versions_read(feed.gate) == [encoded(payload).encode()]
