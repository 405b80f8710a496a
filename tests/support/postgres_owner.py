"""Run as a program by tests that kill it: `python -m tests.support.postgres_owner DATA` owns a data folder."""

import asyncio
import json
import sys
from pathlib import Path

from contextbase.data_folder import DataFolder
from contextbase.db.embedded import EmbeddedPostgres


async def own(data: DataFolder) -> None:
    """Say each step, and at last the postmaster's pid; then wait to be killed."""
    with data.lock():
        server = EmbeddedPostgres(data.postgres)
        await server.start(lambda step: say({"step": step}))
        say({"postmaster": server.process_id})
        await asyncio.Event().wait()


def say(line: object) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(own(DataFolder(Path(sys.argv[1]))))
