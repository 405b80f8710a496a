"""What a restore brings back, what it renews, and where it refuses to go."""

import asyncio
import json
from datetime import timedelta
from pathlib import Path

import httpx
import pytest
from pydantic import SecretStr
from tests.support.backups import Place, System, filled, opened_system, restored
from tests.support.gate_world import write

from contextbase.backup import restore as restore_module
from contextbase.backup import verify_backup
from contextbase.backup.model import BackupProgress, OnProgress
from contextbase.bootstrap import open_database
from contextbase.config import Settings
from contextbase.config.groups import AuditSettings
from contextbase.db.migrations.runner import Migration, all_migrations, migrate
from contextbase.errors import Conflict, CursorOutdated, LeaseLost, Misconfigured, SchemaTooNew
from contextbase.ids import new_uuid
from contextbase.interfaces.api.app import create_app
from contextbase.sdk import AsyncClient, Change
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import SYSTEM, NewEvent, Position, Scope

CHANGED_BY_A_RESTORE = {"projects", "audit", "audit_heads"}  # epochs, and the row that tells of it


def client_of(system: System) -> AsyncClient:
    return AsyncClient("http://api", system.secret, transport=httpx.ASGITransport(create_app(system.groups)))


async def rows_in(settings: Settings, query: str) -> object:
    async with open_database(settings, own=False) as database, database.connection() as connection:
        return await connection.fetchval(query)


class Interrupted(Exception):
    """Somebody pulled the plug."""


def interrupt(progress: BackupProgress) -> None:
    if progress.stage == "tables" and progress.total and progress.done > progress.total // 2:
        raise Interrupted


async def test_a_backup_of_what_was_restored_has_the_same_tables(
    system: System, target: Path, elsewhere: Place, tmp_path: Path
) -> None:
    await filled(system)
    manifest = await system.back_up(target)
    done = await restored(elsewhere.settings, target)
    assert done.rows == sum(table.rows for table in manifest.tables)
    async with opened_system(elsewhere.settings) as copy:
        again = await copy.back_up(tmp_path / "again")
    changed = {
        table.name for table, before in zip(again.tables, manifest.tables, strict=True) if table.sha256 != before.sha256
    }
    assert changed == CHANGED_BY_A_RESTORE | {"tokens"}  # opening the system made one
    assert {table.name for table in manifest.tables if not table.rows} < {table.name for table in manifest.tables}


async def test_every_relation_of_the_schema_is_one_that_a_backup_holds(system: System, target: Path) -> None:
    """A sequence or a partitioned table would need more than a COPY of plain tables. A view holds nothing."""
    manifest = await system.back_up(target)
    async with system.services.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT relname, relkind::text FROM pg_class WHERE relnamespace = 'public'::regnamespace"
        )
    assert {row["relkind"] for row in rows} == {"r", "i", "v"}
    tables = {row["relname"] for row in rows if row["relkind"] == "r"}
    left_out = {"schema_migrations", "search_blobs", "search_postings", "search_progress", "search_segments"}
    assert {table.name for table in manifest.tables} == tables - left_out


async def test_cursors_bases_and_checkouts_from_before_a_restore_are_refused(
    system: System, target: Path, elsewhere: Place
) -> None:
    project = await filled(system)
    async with client_of(system) as client:
        seen = await client.checkout("notes", paths=["a.txt"])
        assert seen.epoch == project.epoch
        change = Change(action="write", path="new.txt", text="hello\n")
        assert (await client.commit("notes", [change], base_seq=seen.seq, epoch=seen.epoch)).committed
    cursor = str((await system.services.feed.heads(project.id)).cursor)
    await system.back_up(target)
    await restored(elsewhere.settings, target)
    async with opened_system(elsewhere.settings) as copy, client_of(copy) as client:
        heads = await copy.services.feed.heads(project.id)
        with pytest.raises(CursorOutdated):
            copy.services.feed.cursor(heads, cursor)
        change = Change(action="write", path="a.txt", text="from another time\n")
        with pytest.raises(CursorOutdated, match="restored"):
            await client.commit("notes", [change], base_seq=seen.seq, epoch=seen.epoch)
        with pytest.raises(CursorOutdated, match="restored"):
            await client.checkout("notes", seq=seen.seq + 1000, epoch=seen.epoch)
        for recursive in (True, False):
            with pytest.raises(CursorOutdated):
                await client.checkout("notes", seq=seen.seq, epoch=seen.epoch, recursive=recursive)
        now = await client.checkout("notes", paths=["new.txt"], contents=True)
        assert now.entries[0].text == "hello\n"
        assert (await client.commit("notes", [change], base_seq=now.seq, epoch=now.epoch)).committed


async def test_streams_come_back_with_their_large_bodies_and_refuse_older_cursors(
    system: System, target: Path, elsewhere: Place
) -> None:
    scopes = [Scope.session(new_uuid()), Scope.user(system.owner.principal.id), SYSTEM]
    payloads = [{"text": letter * length} for letter, length in (("a", 10), ("b", 10_000), ("c", 900_000))]
    for scope in scopes:
        await system.services.streams.publish(scope, *(NewEvent(kind="k", payload=payload) for payload in payloads))
    readable = [ReadableScope(scope=scope) for scope in scopes]
    old = [(await system.services.streams.head(one)).position for one in readable]
    await system.back_up(target)
    assert (await verify_backup(target)).problems == ()
    await restored(elsewhere.settings, target)
    async with opened_system(elsewhere.settings) as copy:
        assert (await copy.services.collector.run(grace=timedelta(0))).blobs == 0
        assert [step.problem async for step in copy.services.fsck.run() if step.problem] == []
        for one, before in zip(readable, old, strict=True):
            streams = copy.services.streams
            page = await streams.read(one, Position())
            assert [event.number for event in page.events] == [1, 2, 3]
            assert page.events[0].payload == payloads[0]
            for event, payload in list(zip(page.events, payloads, strict=True))[1:]:
                content = await streams.body(one, event.number)
                assert json.loads(b"".join([piece async for piece in content.pieces])) == payload
            with pytest.raises(CursorOutdated):
                await streams.read(one, before)
            assert await streams.publish(one.scope, NewEvent(kind="k", payload={})) == [4]


async def test_a_backup_without_the_body_of_an_event_is_found_out(system: System, tmp_path: Path) -> None:
    event = NewEvent(kind="k", payload={"text": "x" * 900_000})
    await system.services.streams.publish(SYSTEM, event)
    await system.back_up(tmp_path / "backups")
    page = await system.services.streams.read(ReadableScope(scope=SYSTEM), Position())
    assert page.events[0].body is not None
    name = str(page.events[0].body.hash)
    [copied] = [path for path in (tmp_path / "backups").rglob("*") if path.parent.name + path.name == name]
    copied.unlink()
    assert [problem for problem in (await verify_backup(tmp_path / "backups")).problems if name in problem]


async def test_claims_of_open_reviews_are_void_and_those_of_closed_ones_stay(
    system: System, target: Path, elsewhere: Place
) -> None:
    project = await filled(system)
    await system.commit(project.id, write("a.txt", b"four\n", 1))
    async with system.services.database.transaction() as connection:
        await connection.execute(
            "UPDATE review_items SET claimed_by = $1, claimed_at = now()", system.owner.principal.id
        )
        await connection.execute(
            """UPDATE review_items SET state = 'rejected', closed_at = now(), closed_by = $1
               WHERE id = (SELECT id FROM review_items ORDER BY seq LIMIT 1)""",
            system.owner.principal.id,
        )
    await system.back_up(target)
    await restored(elsewhere.settings, target)
    claimed = "SELECT array_agg(state) FROM review_items WHERE claimed_by IS NOT NULL"
    assert await rows_in(elsewhere.settings, claimed) == ["rejected"]
    assert await rows_in(elsewhere.settings, "SELECT count(*) FROM review_items WHERE state = 'open'") == 1


async def test_leases_end_with_a_restore_and_no_token_comes_again(
    system: System, target: Path, elsewhere: Place
) -> None:
    await filled(system)
    async with client_of(system) as client:
        held = await client.leases.acquire("notes", "a.txt")
        await system.back_up(target)
        later = await client.leases.acquire("notes", "b.txt")
    await restored(elsewhere.settings, target)
    async with opened_system(elsewhere.settings) as copy, client_of(copy) as client:
        assert (await client.leases.list("notes")).leases == []
        change = Change(action="write", path="a.txt", text="late\n")
        with pytest.raises(LeaseLost):
            await client.commit("notes", [change], base_seq=1, lease=held.token)
        assert (await client.leases.acquire("notes", "a.txt")).token > later.token


async def test_the_trail_goes_on_under_its_own_key_and_tells_of_the_restore(
    system: System, target: Path, elsewhere: Place
) -> None:
    await filled(system)
    manifest = await system.back_up(target)
    await restored(elsewhere.settings, target)
    key = elsewhere.settings.data / "audit.key"
    assert key.read_text() == (system.services.data.path / "audit.key").read_text()
    assert key.stat().st_mode & 0o777 == 0o600
    summary = await rows_in(elsewhere.settings, "SELECT summary FROM audit WHERE action = 'system.restore'")
    assert manifest.snapshot in str(summary)


async def test_a_backup_of_a_system_with_a_configured_key_is_restored_with_or_without_the_setting(
    system: System, target: Path, elsewhere: Place
) -> None:
    key = SecretStr("a key that several servers share, long enough")
    async with opened_system(system.services.settings.model_copy(update={"audit": AuditSettings(key=key)})) as keyed:
        await keyed.back_up(target)
    other_key = AuditSettings(key=SecretStr("another key, and long enough as well, too"))
    other = elsewhere.settings.model_copy(update={"audit": other_key})
    with pytest.raises(Misconfigured, match="CONTEXTBASE_AUDIT_KEY"):
        await restored(other, target)
    await restored(elsewhere.settings, target)
    written = bytes.fromhex((elsewhere.settings.data / "audit.key").read_text())
    assert written == key.get_secret_value().encode()


async def test_a_restore_refuses_a_database_in_use(system: System, target: Path) -> None:
    await filled(system)
    await system.back_up(target)
    with pytest.raises(Conflict, match="in use"):
        await restored(system.services.settings, target)
    assert await system.problems() == []


async def test_a_restore_refuses_a_data_folder_with_another_key(system: System, target: Path, elsewhere: Place) -> None:
    await system.back_up(target)
    elsewhere.settings.data.mkdir()
    (elsewhere.settings.data / "audit.key").write_text("ab" * 32)
    with pytest.raises(Conflict, match=r"audit\.key"):
        await restored(elsewhere.settings, target)
    assert (elsewhere.settings.data / "audit.key").read_text() == "ab" * 32


async def test_an_interrupted_restore_leaves_the_database_empty_and_can_be_done_again(
    system: System, target: Path, elsewhere: Place
) -> None:
    project = await filled(system)
    manifest = await system.back_up(target)
    with pytest.raises(Interrupted):
        await restored(elsewhere.settings, target, on_progress=interrupt)
    assert await rows_in(elsewhere.settings, "SELECT to_regclass('projects')") is None
    done = await restored(elsewhere.settings, target)
    assert done.new_blobs == 0, "those of the first time are used"
    async with opened_system(elsewhere.settings) as copy:
        assert await copy.problems() == []
        head = manifest.projects[0].head
        assert await copy.tree(project.id, head) == await system.tree(project.id, head)


async def test_a_cancelled_restore_and_a_cancelled_backup_leave_nothing_half_done(
    system: System, target: Path, elsewhere: Place
) -> None:
    await filled(system)

    def cancel_at(count: int, stage: str) -> OnProgress:
        """When that many are done, from within: Ctrl-C comes at any time."""
        seen = 0

        def on_progress(progress: BackupProgress) -> None:
            nonlocal seen
            seen += progress.stage == stage
            if seen == count:
                task.cancel()

        return on_progress

    for count, stage in ((4, "tables"), (1, "blobs")):
        task = asyncio.create_task(system.services.backups.create(target, on_progress=cancel_at(count, stage)))
        with pytest.raises(asyncio.CancelledError):
            await task
    await system.back_up(target)
    assert (await verify_backup(target)).problems == ()
    task = asyncio.create_task(restored(elsewhere.settings, target, on_progress=cancel_at(4, "tables")))
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await rows_in(elsewhere.settings, "SELECT to_regclass('projects')") is None
    await restored(elsewhere.settings, target)


async def test_a_migrated_and_empty_database_is_as_good_as_one_never_seen(
    system: System, target: Path, elsewhere: Place
) -> None:
    await filled(system)
    await system.back_up(target)
    async with open_database(elsewhere.settings, own=False) as database:
        await migrate(database)
    await restored(elsewhere.settings, target)
    async with opened_system(elsewhere.settings) as copy:
        assert await copy.problems() == []


async def test_an_older_backup_is_brought_to_the_newer_schema(
    system: System, target: Path, elsewhere: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await filled(system)
    await system.back_up(target)
    ours = all_migrations()
    later = Migration(
        version=len(ours) + 1,
        name="later",
        sql="ALTER TABLE projects ADD COLUMN motto text; ALTER TABLE versions ADD COLUMN note text;",
    )
    monkeypatch.setattr(restore_module, "all_migrations", lambda: [*ours, later])
    await restored(elsewhere.settings, target)
    assert await rows_in(elsewhere.settings, "SELECT count(*) FROM projects WHERE motto IS NULL") == 1
    assert await rows_in(elsewhere.settings, "SELECT max(version) FROM schema_migrations") == len(ours) + 1


async def test_an_empty_database_of_a_newer_schema_is_refused(system: System, target: Path, elsewhere: Place) -> None:
    await system.back_up(target)
    later = Migration(version=len(all_migrations()) + 1, name="later", sql="SELECT 1")
    async with open_database(elsewhere.settings, own=False) as database:
        await migrate(database, [*all_migrations(), later])
    with pytest.raises(Conflict, match="not seen yet"):
        await restored(elsewhere.settings, target)


async def test_a_backup_of_a_schema_that_is_not_ours_is_refused(
    system: System, target: Path, elsewhere: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    await system.back_up(target)
    ours = all_migrations()
    monkeypatch.setattr(restore_module, "all_migrations", lambda: ours[:-1])
    with pytest.raises(SchemaTooNew, match="Upgrade"):
        await restored(elsewhere.settings, target)
    altered = Migration(version=len(ours), name="another", sql="SELECT 1")
    monkeypatch.setattr(restore_module, "all_migrations", lambda: [*ours[:-1], altered])
    with pytest.raises(Misconfigured, match="another migration"):
        await restored(elsewhere.settings, target)
    assert await rows_in(elsewhere.settings, "SELECT to_regclass('projects')") is None


async def test_a_snapshot_is_chosen_by_name(system: System, elsewhere: Place, tmp_path: Path) -> None:
    project = await filled(system)
    first = await system.back_up(tmp_path / "backups")
    await system.commit(project.id, write(f"{new_uuid().hex}", b"later\n", 0))
    second = await system.back_up(tmp_path / "backups")
    assert second.projects[0].head == first.projects[0].head + 1
    await restored(elsewhere.settings, tmp_path / "backups", snapshot=first.snapshot)
    assert await rows_in(elsewhere.settings, "SELECT head FROM projects") == first.projects[0].head
