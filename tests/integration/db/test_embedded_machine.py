"""The embedded PostgreSQL and its machine: accounts, folders, disks, versions."""

import contextlib
import os
import shutil
import stat
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from tests.support.embedded import copy, eventually_read, owner_of, processes_of, read, running, write
from tests.support.require import unavailable

from contextbase.data_folder import DataFolder
from contextbase.db import binaries, embedded
from contextbase.db.account import OsAccount
from contextbase.db.database import Database
from contextbase.db.embedded import socket_folder
from contextbase.errors import Damaged, DatabaseUnavailable, MachineProblem

pytestmark = pytest.mark.xdist_group("embedded-postgres")


async def test_its_files_are_private_and_its_processes_are_never_roots(data: DataFolder) -> None:
    async with running(data) as server:
        uid = OsAccount.choose(data.postgres).uid
        expected = os.geteuid() if uid is None else uid
        assert expected != 0
        for folder in (data.postgres, data.postgres / "cluster", data.postgres / "run", data.postgres / "log"):
            assert stat.S_IMODE(folder.stat().st_mode) == 0o700, folder
            assert owner_of(folder) == expected, folder
        open_to_others = [p for p in (data.postgres / "cluster").rglob("*") if p.lstat().st_mode & 0o077]
        strangers = [p for p in (data.postgres / "cluster").rglob("*") if owner_of(p) != expected]
        assert (open_to_others, strangers) == ([], [])
        assert server.process_id
        postmaster = psutil.Process(server.process_id)
        family = [postmaster, *postmaster.children(recursive=True)]
        assert len(family) > 3
        accounts = {postmaster.uids(), postmaster.gids()}
        for process in family:
            with contextlib.suppress(psutil.NoSuchProcess):  # some come and go
                accounts |= {process.uids(), process.gids()}
        assert {number for account in accounts for number in account} == {expected, uid or os.getegid()}


async def test_it_listens_on_no_port(data: DataFolder) -> None:
    async with running(data) as server:
        assert server.process_id
        postmaster = psutil.Process(server.process_id)
        assert postmaster.net_connections("inet") == []
        assert postmaster.net_connections("unix")


def folder_of_version(folder: Path, version: str) -> DataFolder:
    """A cluster as far as its version is looked at."""
    data = DataFolder(folder)
    (data.postgres / "cluster").mkdir(parents=True)
    (data.postgres / "cluster" / "PG_VERSION").write_text(version)
    return data


@pytest.mark.parametrize(("version", "reason"), [("99\n", "99, newer than"), ("9\n", "9; .*Back up with the old")])
async def test_a_cluster_of_another_major_version_is_refused_and_left_alone(
    empty_folder: Path, version: str, reason: str
) -> None:
    data = folder_of_version(empty_folder, version)
    before = sorted(data.postgres.rglob("*"))
    with pytest.raises(MachineProblem, match=f"made by PostgreSQL {reason}"):
        async with running(data):
            pass
    assert sorted(data.postgres.rglob("*")) == before


@pytest.mark.parametrize("content", ["", "many\n"])
async def test_a_cluster_that_does_not_say_its_version_is_a_clear_error(empty_folder: Path, content: str) -> None:
    data = folder_of_version(empty_folder, content)
    with pytest.raises(MachineProblem, match="PG_VERSION"):
        async with running(data):
            pass


@pytest.mark.usefixtures("as_root")
async def test_a_folder_below_one_that_is_closed_to_others_is_a_clear_error(tmp_path: Path) -> None:
    with pytest.raises(MachineProblem, match=r"cannot reach .*--data /var/lib/contextbase"):
        async with running(DataFolder(tmp_path / "data")):
            pass


@pytest.mark.usefixtures("as_root")
async def test_programs_the_account_cannot_reach_are_copied(
    data: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installed = binaries.find_binaries()
    package = installed.folder.parent.parent
    for name in (package.name, "embedded_postgres.libs"):
        if (package.parent / name).exists():
            shutil.copytree(package.parent / name, tmp_path / "closed" / name, symlinks=True)
    (tmp_path / "closed").chmod(0o700)
    closed = binaries.Binaries(
        folder=tmp_path / "closed" / package.name / "pginstall" / "bin", release=installed.release
    )
    monkeypatch.setattr(embedded, "find_binaries", lambda: closed)
    # What a copy that was killed half-way leaves behind.
    half = data.postgres / "binaries" / "unfinished" / package.name
    half.mkdir(parents=True)
    (half / "half").touch()
    async with running(data) as server:
        assert server.process_id
        program = Path(psutil.Process(server.process_id).exe())
        assert program.is_relative_to(data.postgres / "binaries" / installed.release)
        await write(server, 1)
    assert not list((data.postgres / "binaries").rglob("half"))


async def test_programs_that_are_not_installed_are_a_clear_error(
    data: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(binaries, "find_spec", lambda _: None)
    with pytest.raises(MachineProblem, match="CONTEXTBASE_DATABASE_URL"):
        async with running(data):
            pass


async def test_a_data_folder_on_a_read_only_filesystem_is_a_clear_error(empty_folder: Path) -> None:
    with mounted(empty_folder, "tmpfs", "size=1m,ro"), pytest.raises(MachineProblem, match="is not writable"):
        async with running(DataFolder(empty_folder)):
            pass


@pytest.mark.parametrize("megabytes", [1, 20])
async def test_a_disk_too_small_is_said_plainly_and_a_start_with_room_works(empty_folder: Path, megabytes: int) -> None:
    with mounted(empty_folder, "tmpfs", f"size={megabytes}m,mode=711"):
        data = DataFolder(empty_folder)
        with pytest.raises(MachineProblem, match=r"The disk of .* is full"):
            async with running(data):
                pass
        remount(empty_folder, "size=200m")
        async with running(data) as server:
            await write(server, 1)


async def test_a_disk_that_fills_up_in_use_loses_nothing_and_works_again_with_room(
    made_once: Path, empty_folder: Path
) -> None:
    with mounted(empty_folder, "tmpfs", "size=70m,mode=711"):
        copy(made_once, empty_folder / "data")
        async with running(DataFolder(empty_folder / "data")) as server:
            await write(server, 1)
            database = await Database.connect(server.address)
            with pytest.raises((MachineProblem, DatabaseUnavailable)):
                async with database.transaction() as connection:
                    await connection.execute("INSERT INTO kept SELECT 2 FROM generate_series(1, 3000000)")
            remount(empty_folder, "size=300m")
            assert await eventually_read(database) == [1]
            await database.close()
            await write(server, 3)
            assert await read(server) == [1, 3]


async def test_a_path_too_long_for_a_socket_is_no_obstacle(made_once: Path, empty_folder: Path) -> None:
    deep = empty_folder / ("d" * 60) / ("e" * 60) / "data"
    deep.parent.mkdir(parents=True)
    for place in (deep.parent.parent, deep.parent):
        place.chmod(0o711)
    copy(made_once, deep)
    data = DataFolder(deep)
    place = socket_folder(data.postgres)
    try:
        async with running(data) as server:
            await write(server, 1)
            assert await read(server) == [1]
            assert stat.S_IMODE(place.stat().st_mode) == 0o700
            assert not place.is_relative_to(empty_folder)
    finally:
        shutil.rmtree(place)


async def test_a_socket_folder_somebody_else_put_there_is_refused(empty_folder: Path) -> None:
    data = folder_of_version(empty_folder, str(binaries.find_binaries().major))
    (data.postgres / "run").mkdir()
    (data.postgres / "run").chmod(0o755)
    with pytest.raises(MachineProblem, match="not a private folder"):
        async with running(data):
            pass


async def test_a_page_that_rotted_is_damage_and_not_an_answer(data: DataFolder) -> None:
    async with running(data) as server:
        await write(server, 1)
        database = await Database.connect(server.address)
        async with database.connection() as connection:
            file = data.postgres / "cluster" / await connection.fetchval("SELECT pg_relation_filepath('kept')")
        await database.close()
    content = bytearray(file.read_bytes())
    content[-8] ^= 1
    file.write_bytes(content)
    async with running(data) as server:
        with pytest.raises(Damaged, match="cannot read its own files"):
            await read(server)


async def test_a_damaged_cluster_says_where_the_logs_are(data: DataFolder) -> None:
    shutil.rmtree(data.postgres / "cluster" / "global")
    with pytest.raises(DatabaseUnavailable, match=f"did not start: .*{data.postgres / 'log'}"):
        async with running(data):
            pass
    assert processes_of(data.path) == []


@contextlib.contextmanager
def mounted(folder: Path, kind: str, options: str) -> Iterator[None]:
    done = subprocess.run(
        ["mount", "-t", kind, "-o", options, kind, str(folder)], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        unavailable(f"This test mounts a small filesystem, which needs root on Linux: {done.stderr.strip()}")
    try:
        yield
    finally:
        # PostgreSQL's log writer may take a moment longer than the server it served.
        for _ in range(100):
            if subprocess.run(["umount", str(folder)], capture_output=True, check=False).returncode == 0:
                break
            time.sleep(0.1)
        else:
            subprocess.run(["umount", str(folder)], check=True)


def remount(folder: Path, options: str) -> None:
    subprocess.run(["mount", "-o", f"remount,{options}", str(folder)], check=True)
