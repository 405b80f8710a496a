"""Migrations: applied once, in order, all or nothing, and never against a newer or edited schema."""

import asyncio
import json
from collections.abc import AsyncIterator
from dataclasses import replace
from hashlib import sha256
from uuid import uuid4

import asyncpg
import pytest
from tests.support.postgres import database_copy

from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import Migration, all_migrations, migrate, pending_migrations
from contextbase.errors import Misconfigured, SchemaTooNew
from contextbase.ids import ProjectId
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.repository import StreamRepository

TABLE_A = Migration(version=1, name="a", sql="CREATE TABLE a (n int); INSERT INTO a VALUES (1)")
TABLE_B = Migration(version=2, name="b", sql="CREATE TABLE b (n int)")
_TOMBSTONES = next(migration for migration in all_migrations() if migration.name == "purged_contents")
BROKEN = Migration(version=3, name="broken", sql="CREATE TABLE c (n int); SELECT no_such_function()")


@pytest.fixture
async def address(database_server: DatabaseAddress) -> AsyncIterator[DatabaseAddress]:
    async with database_copy(database_server, "template0") as address:
        yield address


@pytest.fixture
async def empty_database(address: DatabaseAddress) -> AsyncIterator[Database]:
    database = await Database.connect(address)
    try:
        yield database
    finally:
        await database.close()


async def tables(database: Database) -> set[str]:
    async with database.connection() as connection:
        rows = await connection.fetch("SELECT tablename FROM pg_tables WHERE schemaname = 'public'")
    return {row["tablename"] for row in rows}


async def schema(database: Database) -> object:
    """Everything a migration could have changed."""
    async with database.connection() as connection:
        applied = await connection.fetch("SELECT * FROM schema_migrations ORDER BY version")
        columns = await connection.fetch(
            "SELECT table_name, column_name, data_type FROM information_schema.columns "
            "WHERE table_schema = 'public' ORDER BY 1, 2"
        )
    return applied, columns


async def test_a_fresh_database_gets_every_migration_in_order(empty_database: Database) -> None:
    assert await pending_migrations(empty_database) == all_migrations()
    applied = await migrate(empty_database)
    assert applied == all_migrations()
    assert {"projects", "versions", "tokens", "audit", "blobs"} <= await tables(empty_database)
    assert await pending_migrations(empty_database) == []


async def test_a_second_run_changes_nothing(empty_database: Database) -> None:
    await migrate(empty_database)
    before = await schema(empty_database)
    assert await migrate(empty_database) == []
    assert await schema(empty_database) == before


async def test_only_what_is_missing_is_applied(empty_database: Database) -> None:
    assert await migrate(empty_database, [TABLE_A]) == [TABLE_A]
    assert await migrate(empty_database, [TABLE_A, TABLE_B]) == [TABLE_B]


async def test_runners_that_start_together_apply_each_migration_once(address: DatabaseAddress) -> None:
    servers = [await Database.connect(address, pool_size=2) for _ in range(5)]
    try:
        applied = await asyncio.gather(*(migrate(server, [TABLE_A, TABLE_B]) for server in servers))
        assert sorted(map(len, applied)) == [0, 0, 0, 0, 2]
        async with servers[0].connection() as connection:
            assert await connection.fetchval("SELECT count(*) FROM a") == 1
    finally:
        await asyncio.gather(*(server.close() for server in servers))


async def test_a_schema_newer_than_this_contextbase_is_refused_and_left_alone(empty_database: Database) -> None:
    await migrate(empty_database, [TABLE_A, TABLE_B])
    before = await schema(empty_database)
    with pytest.raises(SchemaTooNew, match=r"migration 2 \(b\).*Upgrade contextbase"):
        await migrate(empty_database, [TABLE_A])
    assert await schema(empty_database) == before


async def test_a_newer_schema_is_refused_before_older_ones_are_filled_in(empty_database: Database) -> None:
    await migrate(empty_database, [TABLE_A])
    async with empty_database.connection() as connection:
        await connection.execute("INSERT INTO schema_migrations (version, name, checksum) VALUES (9, 'future', 'x')")
    with pytest.raises(SchemaTooNew, match="migration 9"):
        await migrate(empty_database, [TABLE_A, TABLE_B])
    assert "b" not in await tables(empty_database)


async def test_a_migration_edited_after_it_was_applied_is_refused(empty_database: Database) -> None:
    await migrate(empty_database, [TABLE_A])
    edited = replace(TABLE_A, sql=TABLE_A.sql + " ")
    with pytest.raises(Misconfigured, match=r"Migration 1 \(a\).*other contents"):
        await migrate(empty_database, [edited, TABLE_B])
    assert "b" not in await tables(empty_database)


async def test_a_failing_migration_leaves_nothing_of_itself_or_those_before_it(empty_database: Database) -> None:
    await migrate(empty_database, [TABLE_A])
    before = await schema(empty_database)
    with pytest.raises(asyncpg.UndefinedFunctionError):
        await migrate(empty_database, [TABLE_A, TABLE_B, BROKEN])
    assert await schema(empty_database) == before


async def test_a_foreign_table_of_the_same_name_is_refused(empty_database: Database) -> None:
    async with empty_database.connection() as connection:
        await connection.execute("CREATE TABLE schema_migrations (id int)")
    with pytest.raises(Misconfigured, match="not contextbase's"):
        await migrate(empty_database)
    with pytest.raises(Misconfigured, match="not contextbase's"):
        await pending_migrations(empty_database)


async def test_events_of_projects_and_their_counters_come_along_into_streams(empty_database: Database) -> None:
    streams = next(index for index, migration in enumerate(all_migrations()) if migration.name == "streams")
    await migrate(empty_database, all_migrations()[:streams])
    ann, busy, quiet = uuid4(), uuid4(), uuid4()
    rows = [(number, kind, path) for number, kind, path in ((3, "a", "docs/x"), (4, "b", None), (7, "c", "y"))]
    async with empty_database.transaction() as connection:
        await connection.execute("INSERT INTO principals (id, kind, name) VALUES ($1, 'user', 'ann')", ann)
        for project, name, number in ((busy, "busy", 9), (quiet, "quiet", 0)):
            await connection.execute(
                "INSERT INTO projects (id, name, epoch, created_by) VALUES ($1, $2, gen_random_uuid(), $3)",
                project, name, ann,
            )  # fmt: skip
            await connection.execute("INSERT INTO event_heads VALUES ($1, $2)", project, number)
        for number, kind, path in rows:
            await connection.execute(
                "INSERT INTO events VALUES ($1, $2, $3, $4, $5, $6, '2026-01-31T12:00:00Z')",
                busy, number, kind, ann if path else None, path, json.dumps({"n": number}),
            )  # fmt: skip
        epoch = await connection.fetchval("SELECT epoch FROM projects WHERE id = $1", busy)
    await migrate(empty_database)
    feed = FeedRepository()
    async with empty_database.connection() as connection:
        heads = await feed.heads(connection, ProjectId(busy))
        found = await feed.events(connection, heads, 0, 100)
        assert (heads.epoch, heads.event) == (epoch, 9)
        assert (await feed.heads(connection, ProjectId(quiet))).event == 0
        [next_number] = await StreamRepository().append(
            connection, Scope.project(ProjectId(busy)), [NewEvent(kind="d", payload={})]
        )
    assert next_number == 10
    assert [(event.number, event.kind, event.path) for event in found] == rows
    assert [event.author and event.author.name for event in found] == ["ann", None, "ann"]
    assert {event.at.isoformat() for event in found} == {"2026-01-31T12:00:00+00:00"}
    assert [event.payload for event in found] == [{"n": number} for number, _, _ in rows]
    assert not {"events", "event_heads"} & await tables(empty_database)


async def test_versions_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in all_migrations()] == list(range(1, len(all_migrations()) + 1))


_PURGED_BEFORE = """
INSERT INTO principals (id, kind, name) VALUES ('00000000-0000-0000-0000-000000000001', 'user', 'ann');
INSERT INTO projects (id, name, epoch, created_by)
VALUES ('00000000-0000-0000-0000-000000000002', 'p', gen_random_uuid(), '00000000-0000-0000-0000-000000000001');
INSERT INTO commits (id, project_id, seq, principal_id, operator_type)
VALUES (gen_random_uuid(), '00000000-0000-0000-0000-000000000002', 1, '00000000-0000-0000-0000-000000000001', 'api');
UPDATE projects SET head = 1;
INSERT INTO nodes (project_id, id, created_seq)
VALUES ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000003', 1);
INSERT INTO blobs (hash, size, purged_at) VALUES (sha256('secret'), 6, clock_timestamp());
INSERT INTO blobs (hash, size) VALUES (sha256('other'), 5);
INSERT INTO versions (project_id, node_id, number, seq, path, kind, content_hash, size, sent_hash)
VALUES ('00000000-0000-0000-0000-000000000002', '00000000-0000-0000-0000-000000000003', 1, 1, 'a', 'file',
        sha256('secret'), 6, sha256('other'));
"""


async def test_what_was_purged_before_gets_a_tombstone_of_another_name(empty_database: Database) -> None:
    *before, purged = [migration for migration in all_migrations() if migration.version <= _TOMBSTONES.version]
    await migrate(empty_database, before)
    async with empty_database.connection() as connection:
        await connection.execute(_PURGED_BEFORE)
        await migrate(empty_database, [*before, purged])
        version = await connection.fetchrow("SELECT content_hash, sent_hash FROM versions")
        stone = await connection.fetchrow("SELECT purged_hash, tombstone FROM purged_contents")
        blobs = await connection.fetch(
            "SELECT hash, live, purged_at IS NOT NULL AS purged FROM blobs ORDER BY purged, live"
        )
    secret, other = (sha256(text).digest() for text in (b"secret", b"other"))
    assert (version["content_hash"], version["sent_hash"]) == (stone["tombstone"], other)
    assert (stone["purged_hash"], stone["tombstone"] == secret) == (secret, False)
    assert [tuple(row) for row in blobs] == [
        (secret, False, False),
        (other, True, False),
        (stone["tombstone"], True, True),
    ]
