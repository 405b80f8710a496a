"""The embedded PostgreSQL: started, killed, orphaned, and back with everything that was committed."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.embedded import (
    eventually,
    eventually_read,
    is_alive,
    next_line,
    owner_of,
    owner_process,
    postmaster_of,
    processes_of,
    read,
    running,
    write,
)

from contextbase.bootstrap import open_database
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.account import OsAccount
from contextbase.db.database import Database
from contextbase.db.embedded import EmbeddedPostgres
from contextbase.errors import Conflict, DatabaseUnavailable

pytestmark = pytest.mark.xdist_group("embedded-postgres")


async def test_what_was_written_is_there_after_a_stop_and_a_start(data: DataFolder) -> None:
    async with running(data) as server:
        await write(server, 1)
    assert processes_of(data.path) == []
    async with running(data) as server:
        assert await read(server) == [1]


async def test_stopping_what_is_not_started_does_nothing(empty_folder: Path) -> None:
    await EmbeddedPostgres(empty_folder / "postgres").stop()
    assert not (empty_folder / "postgres").exists()


async def kill_in_transaction(server: EmbeddedPostgres, database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute("INSERT INTO kept VALUES (2)")
        assert server.process_id
        os.kill(server.process_id, signal.SIGKILL)
        await connection.fetchval("SELECT pg_sleep(60)")


async def test_a_postmaster_that_is_killed_in_use_comes_back_with_everything_committed(data: DataFolder) -> None:
    async with running(data) as server:
        await write(server, 1)
        database = await Database.connect(server.address)
        with pytest.raises(DatabaseUnavailable):
            await kill_in_transaction(server, database)
        assert await eventually_read(database) == [1]
        await database.close()


async def test_a_postmaster_whose_owner_was_killed_is_taken_over(data: DataFolder) -> None:
    with owner_process(data) as owner:
        orphan = postmaster_of(owner)
        other = EmbeddedPostgres(data.postgres)  # not its owner, only a way to reach it
        await write(other, 1)
        owner.kill()
        owner.wait(timeout=30)
    assert is_alive(orphan)
    async with running(data) as server:
        assert not is_alive(orphan)
        assert await read(server) == [1]


async def test_owner_and_postmaster_killed_together_leave_nothing_in_the_way(data: DataFolder) -> None:
    with owner_process(data) as owner:
        postmaster = postmaster_of(owner)
        await write(EmbeddedPostgres(data.postgres), 1)
        owner.kill()
        postmaster.kill()
        async with running(data) as server:
            assert await read(server) == [1]


@pytest.mark.parametrize("moment", ["at once", "half-way"])
async def test_a_start_killed_while_it_makes_the_cluster_is_made_good_by_the_next(
    empty_folder: Path, moment: str
) -> None:
    data = DataFolder(empty_folder / "data")
    data.create()
    with owner_process(data) as owner:
        assert next_line(owner) == {"step": "Making the database (once)"}
        if moment == "half-way":
            await eventually(lambda: bool(list(data.postgres.glob("cluster.unfinished-*/base/1"))))
        owner.kill()
        owner.wait(timeout=30)
    async with running(data) as server:
        await write(server, 1)
        assert await read(server) == [1]
        if os.geteuid() == 0:
            assert owner_of(data.postgres) == OsAccount.choose(Path("/none")).uid


@pytest.mark.usefixtures("as_root")
async def test_a_start_killed_before_it_gave_the_folder_away_is_made_good_by_the_next(data: DataFolder) -> None:
    os.chown(data.postgres, 0, 0)
    async with running(data):
        assert owner_of(data.postgres) == OsAccount.choose(Path("/none")).uid


async def test_two_owners_of_one_folder_are_refused_and_the_first_goes_on(data: DataFolder) -> None:
    with owner_process(data) as owner:
        postmaster = postmaster_of(owner)
        with pytest.raises(Conflict, match=f"pid {owner.pid}"):
            async with open_database(Settings(data=data.path), own=True):
                pass
        assert is_alive(postmaster)
        async with open_database(Settings(data=data.path), own=False) as database, database.connection() as connection:
            assert await connection.fetchval("SELECT 1") == 1
        assert is_alive(postmaster)
        owner.kill()
        postmaster.terminate()
        await eventually(lambda: not is_alive(postmaster))


async def test_a_pid_file_naming_a_process_of_somebody_else_is_no_obstacle_and_no_target(data: DataFolder) -> None:
    account = OsAccount.choose(data.postgres)
    with sleeping(account) as bystander:
        pid_file = data.postgres / "cluster" / "postmaster.pid"
        pid_file.write_text(f"{bystander.pid}\n{data.postgres / 'cluster'}\n1\n5432\n\n\n\nready\n")
        account.take(pid_file.parent)
        async with running(data) as server:
            await write(server, 1)
        assert is_alive(bystander)


@contextlib.contextmanager
def sleeping(account: OsAccount) -> Iterator[psutil.Process]:
    """A process of the account's that has nothing to do with PostgreSQL."""
    with subprocess.Popen(["/bin/sleep", "600"], **account.process_arguments()) as process:
        try:
            yield psutil.Process(process.pid)
        finally:
            process.kill()


async def test_a_half_written_pid_file_is_no_obstacle(data: DataFolder) -> None:
    pid_file = data.postgres / "cluster" / "postmaster.pid"
    pid_file.touch()
    OsAccount.choose(data.postgres).take(pid_file.parent)
    async with running(data) as server:
        await write(server, 1)
