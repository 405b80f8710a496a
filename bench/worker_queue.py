"""Claims of queued runs by four machines, beside the least that a queue in PostgreSQL can do."""

import asyncio
import time
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Final

from tests.support.postgres import embedded_server
from tests.support.session_world import SessionWorld

from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import migrate
from contextbase.sessions.queue import QueueLimits

__all__ = ["measure_queue"]

_CLAIMERS: Final = 4
_OWNERS: Final = 10


def measure_queue(folder: Path, *, runs: int) -> dict[str, float]:
    """Claims per second: of our queue, and of a bare table with SKIP LOCKED."""
    with embedded_server() as address:
        return asyncio.run(_measured(address, folder, runs))


async def _measured(address: DatabaseAddress, folder: Path, runs: int) -> dict[str, float]:
    database = await Database.connect(address)
    try:
        await migrate(database)
        limits = QueueLimits(most_running=runs, most_starting=runs)
        async with SessionWorld.opened(database, folder, limits) as world:
            people = [await world.person(f"p{n}") for n in range(_OWNERS)]
            for n in range(runs):
                await world.queued(people[n % _OWNERS])
            await _make_bare(database, runs)
            bare = await _per_second([_claim_bare(database) for _ in range(_CLAIMERS)])
            ours = await _per_second([_claim(world, f"m{n}") for n in range(_CLAIMERS)])
    finally:
        await database.close()
    return {"claims_per_s": ours, "bare_skip_locked_per_s": bare}


async def _per_second(claimers: Sequence[Awaitable[int]]) -> float:
    start = time.perf_counter()
    claimed = sum(await asyncio.gather(*claimers))
    return claimed / (time.perf_counter() - start)


async def _claim(world: SessionWorld, machine: str) -> int:
    count = 0
    while claimed := await world.queue.claim(machine):
        count += len(claimed)
    return count


async def _make_bare(database: Database, rows: int) -> None:
    async with database.connection() as connection:
        await connection.execute("CREATE TABLE bare_queue (id bigint PRIMARY KEY, state text NOT NULL)")
        await connection.execute("INSERT INTO bare_queue SELECT n, 'ready' FROM generate_series(1, $1) n", rows)
        await connection.execute("CREATE INDEX bare_queue_ready ON bare_queue (id) WHERE state = 'ready'")
        await connection.execute("ANALYZE")


async def _claim_bare(database: Database) -> int:
    count = 0
    while True:
        async with database.transaction() as connection:
            found = await connection.fetchval(
                "SELECT id FROM bare_queue WHERE state = 'ready' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED"
            )
            if found is None:
                return count
            await connection.execute("UPDATE bare_queue SET state = 'claimed' WHERE id = $1", found)
        count += 1
