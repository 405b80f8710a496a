"""A process that takes leases in a database, as a server on some machine would.

python -m tests.support.database_lease_worker SOCKET_FOLDER DATABASE PROJECT NODE hold PATTERN OWNER TTL
python -m tests.support.database_lease_worker SOCKET_FOLDER DATABASE PROJECT NODE append FILE OWNER TIMES

`hold` says "held TOKEN" and waits for input; `append` rewrites a file again and again, each time under its lease. A
NODE of "" is this machine's own.
"""

import asyncio
import sys
import tempfile
from datetime import timedelta
from pathlib import Path

from tests.support.gate_world import GateWorld
from tests.support.lease_world import LeaseWorld, lease_world

from contextbase.db.database import Database, DatabaseAddress


async def main(address: DatabaseAddress, project: str, node: str, action: str, *arguments: str) -> None:
    database = await Database.connect(address, pool_size=5)
    try:
        with tempfile.TemporaryDirectory() as folder:
            gate = await GateWorld.start(database, Path(folder), project_name=project)
            async with lease_world(gate) as leases:
                await {"hold": hold, "append": append}[action](leases, node, *arguments)
    finally:
        await database.close()


async def hold(world: LeaseWorld, node: str, pattern: str, owner: str, ttl: str) -> None:
    leases = world.of(world.gate.owner, node=node, ttl=timedelta(seconds=float(ttl)))
    lease = await leases.acquire(pattern, owner=owner)
    print(f"held {lease.token}", flush=True)
    await asyncio.to_thread(sys.stdin.read)


async def append(world: LeaseWorld, node: str, file: str, owner: str, times: str) -> None:
    leases = world.of(world.gate.owner, node=node)
    for _ in range(int(times)):
        lease = await leases.acquire("shared.txt", owner=owner)
        rewrite(Path(file), f"{owner} {lease.token}\n")
        await leases.release(lease)
    print("done", flush=True)


def rewrite(file: Path, line: str) -> None:
    """Reads all, writes all: without the lease, what others wrote between would be lost."""
    file.write_text(file.read_text() + line)


if __name__ == "__main__":
    asyncio.run(main(DatabaseAddress(socket_folder=sys.argv[1], database=sys.argv[2]), *sys.argv[3:]))
