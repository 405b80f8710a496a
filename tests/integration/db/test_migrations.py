"""Migrations: applied once, in order, all or nothing, and never against a newer or edited schema."""

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import asyncpg
import pytest
from tests.support.postgres import database_copy

from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import Migration, all_migrations, migrate, pending_migrations
from contextbase.errors import Misconfigured, SchemaTooNew

TABLE_A = Migration(version=1, name="a", sql="CREATE TABLE a (n int); INSERT INTO a VALUES (1)")
TABLE_B = Migration(version=2, name="b", sql="CREATE TABLE b (n int)")
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


async def test_versions_are_numbered_without_gaps() -> None:
    assert [migration.version for migration in all_migrations()] == list(range(1, len(all_migrations()) + 1))
