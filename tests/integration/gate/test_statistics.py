"""The planner's statistics while a project grows quickly."""

import asyncio
from pathlib import Path

import pytest
from tests.support.gate_world import GateWorld, write

from contextbase.db.database import Database


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> GateWorld:
    return await GateWorld.start(database, tmp_path)


async def test_the_planner_knows_of_a_large_import_before_autovacuum_looks(
    world: GateWorld, database: Database
) -> None:
    async with asyncio.timeout(600), database.connection() as connection:
        await connection.execute("ALTER TABLE versions SET (autovacuum_enabled = off)")
        await world.commit(*(write(f"imported/{number}.txt", b"%d" % number, 0) for number in range(2_000)))
        known = 0.0
        while known < 2_000:
            known = await connection.fetchval("SELECT reltuples FROM pg_class WHERE oid = 'versions'::regclass")
            await asyncio.sleep(0.05)
