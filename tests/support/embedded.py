"""An embedded PostgreSQL under test: its owner, its processes, its data."""

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path

import psutil

from contextbase.data_folder import DataFolder
from contextbase.db.database import Database
from contextbase.db.embedded import EmbeddedPostgres
from contextbase.errors import DatabaseUnavailable

__all__ = [
    "copy",
    "eventually",
    "eventually_read",
    "is_alive",
    "next_line",
    "owner_of",
    "owner_process",
    "postmaster_of",
    "processes_of",
    "read",
    "running",
    "write",
]


def copy(made_once: Path, data: Path) -> None:
    subprocess.run(["/bin/cp", "-a", str(made_once), str(data)], check=True)  # owners too


@contextlib.asynccontextmanager
async def running(data: DataFolder) -> AsyncIterator[EmbeddedPostgres]:
    server = EmbeddedPostgres(data.postgres)
    try:
        await server.start()
        yield server
    finally:
        await server.stop()


@contextlib.contextmanager
def owner_process(data: DataFolder) -> Iterator["subprocess.Popen[str]"]:
    command = [sys.executable, "-m", "tests.support.postgres_owner", str(data.path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process
    finally:
        process.kill()
        process.communicate(timeout=30)


def next_line(process: "subprocess.Popen[str]") -> dict[str, object]:
    assert process.stdout is not None
    line: dict[str, object] = json.loads(process.stdout.readline())
    return line


def postmaster_of(process: "subprocess.Popen[str]") -> psutil.Process:
    for _ in range(10):
        line = next_line(process)
        if isinstance(pid := line.get("postmaster"), int):
            return psutil.Process(pid)
    raise AssertionError("no postmaster")


async def write(server: EmbeddedPostgres, value: int) -> None:
    database = await Database.connect(server.address)
    async with database.transaction() as connection:
        await connection.execute("CREATE TABLE IF NOT EXISTS kept (value int)")
        await connection.execute("INSERT INTO kept VALUES ($1)", value)
    await database.close()


async def read(server: EmbeddedPostgres) -> list[int]:
    database = await Database.connect(server.address)
    async with database.connection() as connection:
        rows = await connection.fetch("SELECT value FROM kept ORDER BY value")
    await database.close()
    return [row["value"] for row in rows]


async def eventually_read(database: Database) -> list[int]:
    for _ in range(300):
        try:
            async with database.connection() as connection:
                return [row["value"] for row in await connection.fetch("SELECT value FROM kept ORDER BY value")]
        except DatabaseUnavailable:
            await asyncio.sleep(0.1)
    raise AssertionError("PostgreSQL did not come back")


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(1000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it never happened")


def is_alive(process: psutil.Process) -> bool:
    """Without an init that reaps them, orphans stay as zombies: those are dead."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            if str(folder) in " ".join(process.cmdline()) and "postgres" in process.name():
                found.append(process)
    return found


def owner_of(path: Path) -> int:
    return path.lstat().st_uid
