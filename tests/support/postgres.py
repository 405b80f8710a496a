"""Real PostgreSQL servers: the embedded one, and one from elsewhere, over TCP with a password."""

import asyncio
import contextlib
import os
import secrets
import shutil
import socket
import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from urllib.parse import urlsplit, urlunsplit

import asyncpg
from tests.support.require import unavailable

from contextbase.db.account import OsAccount
from contextbase.db.binaries import Binaries
from contextbase.db.database import DatabaseAddress
from contextbase.db.embedded import EmbeddedPostgres

__all__ = ["database_copy", "embedded_server", "external_server", "reachable_folder"]


@contextlib.contextmanager
def reachable_folder(*, in_memory: bool = True) -> Iterator[Path]:
    """A temporary folder that PostgreSQL's account can enter even when the tests run as root."""
    folder = Path(tempfile.mkdtemp(prefix="contextbase-test-", dir=_in_memory() if in_memory else None))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder)


def _in_memory() -> str | None:
    """Linux's folder in memory, if it is large and may hold programs: a cluster is made there thrice as quickly."""
    place = Path("/dev/shm")  # noqa: S108 - mkdtemp makes a private folder in it
    if not place.is_dir():
        return None
    status = os.statvfs(place)
    roomy = status.f_bavail * status.f_frsize > 2_000_000_000
    return str(place) if roomy and not status.f_flag & os.ST_NOEXEC else None


@contextlib.contextmanager
def embedded_server() -> Iterator[DatabaseAddress]:
    with reachable_folder() as folder, asyncio.Runner() as runner:
        server = EmbeddedPostgres(folder / "postgres")
        try:
            runner.run(server.start())
            yield server.address
        finally:
            runner.run(server.stop())


@contextlib.contextmanager
def external_server() -> Iterator[DatabaseAddress]:
    """The system's own PostgreSQL in a cluster of ours, reached by a URL."""
    binaries = _system_binaries()
    with reachable_folder() as folder:
        account = OsAccount.choose(folder / "none").with_name()
        account.take(folder)
        password, port = secrets.token_hex(16), _free_port()
        password_file = folder / "password"
        password_file.write_text(password)
        account.take(folder)
        cluster = folder / "cluster"
        subprocess.run(
            [binaries.program("initdb"), "-D", str(cluster), "-U", "tester", "-E", "UTF8", "--locale=C",
             "--auth=scram-sha-256", f"--pwfile={password_file}", "--no-sync"],
            **account.process_arguments(), capture_output=True, check=True, timeout=120,
        )  # fmt: skip
        command = [binaries.program("postgres"), "-D", str(cluster), "-p", str(port), "-k", str(folder)]
        command += ["-c", "listen_addresses=127.0.0.1", "-c", "fsync=off", "-c", "max_connections=200"]
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(command, **account.process_arguments(), stdout=log, stderr=log)
        try:
            _wait_for(cluster / "postmaster.pid", process)
            yield DatabaseAddress(url=f"postgresql://tester:{password}@127.0.0.1:{port}/postgres")
        finally:
            process.terminate()
            process.wait(timeout=30)


@contextlib.asynccontextmanager
async def database_copy(server: DatabaseAddress, template: str) -> AsyncIterator[DatabaseAddress]:
    """A fresh database made from a template, dropped afterwards."""
    name = f"test_{secrets.token_hex(8)}"
    # By itself PostgreSQL writes every page of the copy to its log as well, which takes twice the time.
    await run_on_server(server, f"CREATE DATABASE {name} TEMPLATE {template} STRATEGY FILE_COPY")
    try:
        yield named(server, name)
    finally:
        await run_on_server(server, f"DROP DATABASE {name} WITH (FORCE)")


async def run_on_server(server: DatabaseAddress, statement: str) -> None:
    address = named(server, "postgres")
    connection = await asyncpg.connect(
        address.url, host=address.socket_folder, user=None if address.url else address.user,
        database=None if address.url else address.database,
    )  # fmt: skip
    try:
        await connection.execute(statement)
    finally:
        await connection.close()


def named(server: DatabaseAddress, name: str) -> DatabaseAddress:
    """The same server, another database."""
    if server.url is None:
        return DatabaseAddress(socket_folder=server.socket_folder, user=server.user, database=name)
    return DatabaseAddress(url=urlunsplit(urlsplit(server.url)._replace(path=f"/{name}")))


def _system_binaries() -> Binaries:
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"), key=lambda path: int(path.parts[-3]))
    on_path = shutil.which("postgres")
    program = found[-1] if found else Path(on_path).resolve() if on_path else None
    if program is None:
        unavailable("This test needs a PostgreSQL of the system's own. To get it: apt-get install postgresql")
    assert program is not None
    return Binaries(folder=program.parent, release="15.0")


def _wait_for(pid_file: Path, process: "subprocess.Popen[bytes]") -> None:
    for _ in range(600):
        with contextlib.suppress(FileNotFoundError, IndexError):
            if pid_file.read_text().splitlines()[7].strip() == "ready":
                return
        assert process.poll() is None, "PostgreSQL did not start"
        time.sleep(0.05)
    raise AssertionError("PostgreSQL did not become ready")


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port
