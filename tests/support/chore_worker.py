"""A server in miniature that competes for the lead, to be killed: its one chore adds a row to the table `done`.

python -m tests.support.chore_worker SOCKET_FOLDER DATABASE NAME LEASE_SECONDS
Says `started`. SIGTERM stops it as a server is stopped.
"""

import asyncio
import signal
import sys
from datetime import timedelta

from prometheus_client import CollectorRegistry

from contextbase.chores import Chore, ChoreRunner, Leadership, Where
from contextbase.chores.metrics import ChoreMetrics
from contextbase.chores.repository import ChoreRepository
from contextbase.db.database import Database, DatabaseAddress
from contextbase.ids import SystemClock


async def compete(address: DatabaseAddress, name: str, lease: timedelta) -> None:
    database = await Database.connect(address, pool_size=5)
    repository, metrics = ChoreRepository(), ChoreMetrics(CollectorRegistry())

    async def add() -> None:
        async with database.transaction() as connection:
            await leadership.fence(connection)
            await connection.execute("INSERT INTO done (server, term) SELECT $1, term FROM chore_leader", name)

    leadership = Leadership(database=database, repository=repository, server=name, lease=lease, metrics=metrics)
    runner = ChoreRunner(
        [Chore(name="add", every=timedelta(milliseconds=20), run=add, where=Where.LEADER)],
        database=database,
        repository=repository,
        leadership=leadership,
        server=name,
        metrics=metrics,
        clock=SystemClock(),
    )
    running = asyncio.create_task(runner.run())
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, running.cancel)
    print("started", flush=True)
    await asyncio.gather(running, return_exceptions=True)
    await database.close()


if __name__ == "__main__":
    asyncio.run(
        compete(
            DatabaseAddress(socket_folder=sys.argv[1], database=sys.argv[2]),
            sys.argv[3],
            timedelta(seconds=float(sys.argv[4])),
        )
    )
