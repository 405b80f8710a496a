"""A process that takes a lease, and keeps it until it is told otherwise.

python -m tests.support.lease_worker hold FOLDER PATTERN OWNER TTL [NODE]   says "held TOKEN", then waits for input
python -m tests.support.lease_worker append FOLDER FILE OWNER TIMES         appends to it, each time under its lease
"""

import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

from contextbase.leases import FolderLeases, SyncLeases
from contextbase.leases.processes import this_process

__all__ = ["append", "hold"]


def hold(folder: str, pattern: str, owner: str, ttl: str, node: str = "") -> None:
    process = replace(this_process(), node=node) if node else None
    lasting = timedelta(seconds=float(ttl))
    with SyncLeases(lambda: FolderLeases(Path(folder), ttl=lasting, process=process)) as leases:
        print(f"held {leases.acquire(pattern, owner=owner).token}", flush=True)
        sys.stdin.read()


def append(folder: str, file: str, owner: str, times: str) -> None:
    """Reads all, writes all: without the lease, what others wrote between would be lost."""
    with SyncLeases(lambda: FolderLeases(Path(folder))) as leases:
        for _ in range(int(times)):
            with leases.holding("shared.txt", owner=owner) as lease:
                before = Path(file).read_text()
                Path(file).write_text(f"{before}{owner} {lease.token}\n")
    print("done", flush=True)


if __name__ == "__main__":
    {"hold": hold, "append": append}[sys.argv[1]](*sys.argv[2:])
