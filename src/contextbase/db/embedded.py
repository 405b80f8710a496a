"""The embedded PostgreSQL: made, started, watched and stopped in a folder of its own. Unix socket only, never root.

<folder>/            0700, owned by the account PostgreSQL runs as
    cluster/         the database cluster (PGDATA)
    run/             the socket
    log/             a week of server logs, one file a day of the week; startup.log of the last start
    binaries/        a copy of the programs, only where the account cannot reach the installed ones
"""

import asyncio
import contextlib
import errno
import hashlib
import logging
import os
import re
import secrets
import shutil
import signal
import stat
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import asyncpg

from contextbase.db.account import OsAccount
from contextbase.db.binaries import Binaries, find_binaries, reachable
from contextbase.db.database import DatabaseAddress
from contextbase.durable import flush_folder
from contextbase.errors import DatabaseUnavailable, MachineProblem

__all__ = ["EmbeddedPostgres", "embedded_address"]

_log = logging.getLogger(__name__)

USER: Final = "contextbase"
DATABASE: Final = "contextbase"
_LONGEST_SOCKET_FOLDER: Final = 80  # sockaddr_un holds 104-108 bytes, of which the socket's name takes some
_SHORT_FOLDER: Final = Path("/tmp")  # noqa: S108 - not $TMPDIR, which the next command may have set otherwise
_START_SECONDS: Final = 600.0  # recovery after a crash replays the log; a server that ends early is noticed at once
_STOP_SECONDS: Final = 30.0

# The socket's folder is open to the account alone (0700), so whoever can connect could read the files anyway:
# "trust" asks for no password that would have to lie beside them.
_SETTINGS: Final = {
    "listen_addresses": "",
    "unix_socket_permissions": "0700",
    "max_connections": "200",
    "shared_buffers": "128MB",
    "logging_collector": "on",
    "log_filename": "postgresql-%a.log",
    "log_rotation_age": "1d",
    "log_truncate_on_rotation": "on",
    "log_line_prefix": "%m [%p] ",
}


class EmbeddedPostgres:
    """Owns the postmaster of one folder. The caller holds the data folder's lock, so there is only one of us."""

    def __init__(self, folder: Path) -> None:
        self._folder = _one_spelling(folder)
        self._account = OsAccount.choose(self._folder)
        self._binaries: Binaries | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._watcher: asyncio.Task[None] | None = None

    @property
    def address(self) -> DatabaseAddress:
        return embedded_address(self._folder)

    @property
    def process_id(self) -> int | None:
        return self._process.pid if self._process else None

    async def start(self, on_step: Callable[[str], None] = lambda _: None) -> None:
        """Make the cluster if there is none, start PostgreSQL and keep it running until `stop`.

        Raises `MachineProblem` (folder, disk, version) or `DatabaseUnavailable` (it does not come up)."""
        with _clear_errors(self._folder):
            await asyncio.to_thread(self._prepare, on_step)
            on_step("Starting the database")
            await self._launch()
            await self._ensure_database()
        self._watcher = asyncio.create_task(self._watch(), name="embedded-postgres-watch")

    async def stop(self) -> None:
        """Fast shutdown: sessions are ended, everything committed is on disk."""
        if self._watcher:
            self._watcher.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._watcher
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        for signal_number, patience in ((signal.SIGINT, _STOP_SECONDS), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)):
            process.send_signal(signal_number)
            if await _wait_until(lambda: process.poll() is not None, patience):
                return
            _log.warning("PostgreSQL ignored %s for %.0f s", signal_number.name, patience)

    # -- making the cluster

    def _prepare(self, on_step: Callable[[str], None]) -> None:
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if self._account.uid is not None and self._folder.is_symlink():
            raise MachineProblem(
                f"{self._folder} is a link. Root gives this folder to PostgreSQL's account, so it must not lead "
                "elsewhere: remove the link, or choose another folder with --data."
            )
        self._give_folder_to(self._account)
        if not self._account.can_enter(self._folder):
            raise MachineProblem(
                f"PostgreSQL does not run as root, and the account it runs as (uid {self._account.uid}) cannot reach "
                f"{self._folder}: a folder above it is closed to others. Choose a data folder that is reachable, such "
                "as `--data /var/lib/contextbase`, or start contextbase as another user."
            )
        self._binaries = reachable(find_binaries(), self._account, self._folder / "binaries")
        if not self._cluster.exists():
            on_step("Making the database (once)")
            self._make_cluster()
        self._check_major_version()
        self._own_folder(socket_folder(self._folder))
        self._own_folder(self._folder / "log")

    def _make_cluster(self) -> None:
        # Made beside its place and renamed when complete: a start that is killed half-way leaves no half cluster. Its
        # initdb may still be at work, so each start makes its own.
        for leftover in self._folder.glob("cluster.unfinished-*"):
            shutil.rmtree(leftover, ignore_errors=True)
        unfinished = self._folder / f"cluster.unfinished-{secrets.token_hex(4)}"
        maker = self._account.with_name()
        if not maker.has_name():
            raise MachineProblem(
                f"PostgreSQL makes a database only for an account with a name, and uid {os.geteuid()} has none here. "
                "Add it to /etc/passwd, start contextbase as another user, or set CONTEXTBASE_DATABASE_URL."
            )
        unfinished.mkdir(mode=0o700)
        maker.take(unfinished)
        self._give_folder_to(maker)  # for the moment initdb runs
        try:
            self._run_as(
                maker,
                "initdb",
                *("--pgdata", str(unfinished), "--username", USER, "--auth", "trust", "--no-instructions"),
                *("--encoding", "UTF8", "--locale", "C", "--locale-provider", "builtin", "--builtin-locale", "C.UTF-8"),
                "--data-checksums",
            )
        finally:
            self._give_folder_to(self._account)
        self._account.take(unfinished)
        unfinished.rename(self._cluster)
        flush_folder(self._folder)

    def _check_major_version(self) -> None:
        version_file = self._cluster / "PG_VERSION"
        try:
            made_by = int(version_file.read_text())
        except (FileNotFoundError, ValueError) as error:
            raise MachineProblem(f"{version_file} does not say which PostgreSQL made it; restore it.") from error
        ours = self._programs.major
        if made_by > ours:
            raise MachineProblem(
                f"{self._folder} was made by PostgreSQL {made_by}, newer than the {ours} of this contextbase; "
                "upgrade contextbase. Nothing was changed."
            )
        if made_by < ours:
            raise MachineProblem(
                f"{self._folder} was made by PostgreSQL {made_by}; this contextbase has {ours}. Back up with the old "
                "contextbase and restore with this one. Nothing was changed."
            )

    def _give_folder_to(self, account: OsAccount) -> None:
        if account.uid is not None:  # never through a link: root would give away what it points to
            os.chown(self._folder, account.uid, account.uid, follow_symlinks=False)

    def _own_folder(self, folder: Path) -> None:
        """Make a folder of the account's, 0700; refuse one that somebody else put there."""
        if not folder.exists():
            folder.mkdir(mode=0o700)
            self._account.take(folder)
        status = folder.lstat()
        owner = os.geteuid() if self._account.uid is None else self._account.uid
        if not stat.S_ISDIR(status.st_mode) or status.st_uid != owner or status.st_mode & 0o077:
            raise MachineProblem(f"{folder} is not a private folder of uid {owner}; remove it and start again.")

    # -- running it

    async def _launch(self) -> None:
        await asyncio.to_thread(self._stop_orphan)
        startup_log = self._folder / "log" / "startup.log"
        process = self._process = await asyncio.to_thread(self._spawn, startup_log)
        await _wait_until(lambda: self._is_ready() or process.poll() is not None, _START_SECONDS)
        if process.poll() is not None or not self._is_ready():
            raise self._start_failure(startup_log)

    def _spawn(self, startup_log: Path) -> subprocess.Popen[bytes]:
        settings = _SETTINGS | {
            "unix_socket_directories": _quoted(socket_folder(self._folder)),
            "log_directory": str(self._folder / "log"),
        }
        options = [piece for name, value in settings.items() for piece in ("-c", f"{name}={value}")]
        with startup_log.open("wb") as output:
            return subprocess.Popen(
                [self._programs.program("postgres"), "-D", str(self._cluster), *options],
                **self._account.process_arguments(),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,  # Ctrl-C is for the server, which stops PostgreSQL last
            )

    def _is_ready(self) -> bool:
        """PostgreSQL writes its state to the eighth line of postmaster.pid; pg_ctl reads it there too."""
        try:
            lines = os.fsdecode((self._cluster / "postmaster.pid").read_bytes()).splitlines()
        except FileNotFoundError:
            return False
        return len(lines) >= 8 and lines[0].strip() == str(self.process_id) and lines[7].strip() == "ready"

    def _start_failure(self, startup_log: Path) -> Exception:
        newest = max((self._folder / "log").glob("*.log"), key=lambda file: file.stat().st_mtime)
        text = startup_log.read_text(errors="replace") + newest.read_text(errors="replace")[-4000:]
        fatal = [line for line in text.splitlines() if "FATAL" in line or "PANIC" in line][-1:]
        reason = re.split(r"(?:FATAL|PANIC):\s*", fatal[0])[-1] if fatal else "no reason given"
        if "No space left on device" in text[-4000:]:
            return MachineProblem(f"The disk of {self._folder} is full; free some space and start again.")
        return DatabaseUnavailable(f"The embedded database did not start: {reason} (logs: {self._folder / 'log'})")

    def _stop_orphan(self) -> None:
        """Stop a postmaster that outlived its server (kill -9).

        Often only its pid file is left, and the pid may be another process's by now, in a container even ours: that
        one must not be signalled, and must not keep PostgreSQL, which looks no closer, from starting."""
        pid_file = self._cluster / "postmaster.pid"
        try:
            process_id = int(pid_file.read_bytes().split(b"\n", 1)[0])
        except (FileNotFoundError, ValueError):  # none, or killed while it wrote the file
            process_id = 0
        if f" -D {self._cluster} " not in _command_line(process_id):
            # PostgreSQL still finds backends that live on, by their shared memory.
            for stale in (pid_file, *socket_folder(self._folder).glob(".s.PGSQL.*.lock")):
                stale.unlink(missing_ok=True)
            return
        arguments = self._account.process_arguments()
        command = [self._programs.program("pg_ctl"), "stop", "--pgdata", str(self._cluster), "--mode", "fast", "--wait"]
        subprocess.run(command, **arguments, capture_output=True, timeout=_STOP_SECONDS * 4, check=False)

    async def _ensure_database(self) -> None:
        connection = await asyncpg.connect(**{**self.address.connect_arguments(), "database": "postgres"}, timeout=30)
        try:
            if not await connection.fetchval("SELECT true FROM pg_database WHERE datname = $1", DATABASE):
                await connection.execute(f"CREATE DATABASE {DATABASE}")
        finally:
            await connection.close()

    async def _watch(self) -> None:
        """Bring PostgreSQL back when it dies; the pool reconnects by itself."""
        delay = 0.0
        while True:
            await asyncio.sleep(0.2 + delay)
            if self._process is not None and self._process.poll() is None:
                continue
            code = self._process.returncode if self._process else None
            _log.error("PostgreSQL stopped by itself (exit code %s); starting it again", code)
            try:
                await self._launch()
                delay = 0.0
            except (MachineProblem, DatabaseUnavailable, OSError) as error:
                delay = min(delay * 2 + 0.5, 10.0)
                _log.error("PostgreSQL did not come back: %s; next try in %.1f s", error, delay)

    # -- small things

    @property
    def _cluster(self) -> Path:
        return self._folder / "cluster"

    @property
    def _programs(self) -> Binaries:
        if self._binaries is None:
            raise RuntimeError("start() finds the programs first")
        return self._binaries

    def _run_as(self, account: OsAccount, program: str, *arguments: str) -> None:
        command = [self._programs.program(program), *arguments]
        done = subprocess.run(command, **account.process_arguments(), capture_output=True, timeout=300, check=False)
        if done.returncode != 0:
            output = (done.stderr or done.stdout).decode(errors="replace").strip()
            if "No space left on device" in output:
                raise MachineProblem(f"The disk of {self._folder} is full; free some space and start again.")
            raise DatabaseUnavailable(f"{program} failed: {output[-600:]}")


def embedded_address(folder: Path) -> DatabaseAddress:
    """How to reach the PostgreSQL that runs in `folder`, whoever started it."""
    return DatabaseAddress(socket_folder=str(socket_folder(folder)), database=DATABASE, user=USER)


def socket_folder(folder: Path) -> Path:
    """Where the socket of the PostgreSQL in `folder` is: below it, or in /tmp if that path is too long."""
    folder = _one_spelling(folder)
    below = folder / "run"
    if len(os.fsencode(below)) <= _LONGEST_SOCKET_FOLDER:
        return below
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:16]
    return _SHORT_FOLDER / f"contextbase-{digest}"


def _one_spelling(folder: Path) -> Path:
    """The same for every way to write the path: what runs there must be found again. A link at its end stays one."""
    return folder.parent.resolve() / folder.name


def _quoted(folder: Path) -> str:
    """As one entry of a list of folders, whatever is in its name."""
    return '"' + str(folder).replace('"', '""') + '"'


async def _wait_until(condition: Callable[[], bool], seconds: float) -> bool:
    deadline = asyncio.get_running_loop().time() + seconds
    while not condition():
        if asyncio.get_running_loop().time() > deadline:
            return False
        await asyncio.sleep(0.01)
    return True


def _command_line(process_id: int) -> str:
    """What a process was started with; empty when there is no such process."""
    if Path("/proc/self/cmdline").exists():
        try:
            return (
                Path(f"/proc/{process_id}/cmdline").read_bytes().replace(b"\0", b" ").decode(errors="surrogateescape")
            )
        except (FileNotFoundError, ProcessLookupError):
            return ""
    command = ["/bin/ps", "-o", "args=", "-p", str(process_id)]  # macOS
    return subprocess.run(command, capture_output=True, text=True, timeout=10, check=False).stdout


@contextlib.contextmanager
def _clear_errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except asyncpg.DiskFullError as error:
        raise MachineProblem(f"The disk of {folder} is full; free some space and start again.") from error
    except OSError as error:
        if error.errno == errno.ENOSPC:
            raise MachineProblem(f"The disk of {folder} is full; free some space and start again.") from error
        if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise MachineProblem(f"The data folder {folder} is not writable ({error.strerror}).") from error
        raise
