"""The data folder of one machine: its layout, its lock, and the secrets kept outside the database."""

import contextlib
import errno
import fcntl
import json
import os
import re
import secrets
import socket
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Final

from contextbase.durable import flush, flush_folder
from contextbase.errors import Conflict, MachineProblem

__all__ = ["DEFAULT_DATA", "DataFolder", "RunningServer", "default_data_folder", "write_private"]

DEFAULT_DATA: Final = Path(".contextbase-data")
_OWN: Final = frozenset(
    {"audit.key", "blobs", "contextbase.toml", "lock", "lost+found", "node", "node-name", "owner-token", "postgres"}
    | {"server.json"}
)
_OWN_LEFTOVER: Final = re.compile(r"\.(audit\.key|node-name|owner-token|server\.json)\.[0-9a-f]{8}")
_SHARED_FALLBACK: Final = Path("/var/lib/contextbase")


@dataclass(frozen=True, kw_only=True, slots=True)
class RunningServer:
    """What a server says about itself to the commands on its machine."""

    url: str
    process_id: int


@dataclass(frozen=True, slots=True)
class DataFolder:
    """
    <data>/lock            held by the one server (or offline command) that owns the folder
    <data>/server.json     the running server's address, for the CLI
    <data>/owner-token     the owner's token, 0600
    <data>/audit.key       the audit chain's HMAC key, 0600
    <data>/postgres/       the embedded database: see db/embedded.py
    <data>/blobs/          large blobs, unless they go to S3
    <data>/node/           agents' folders and the mirrors they stand on: see workspaces/workspace_folders.py
    <data>/node-name       what this server calls itself
    <data>/contextbase.toml  settings, if the operator writes them
    """

    path: Path

    @property
    def postgres(self) -> Path:
        return self.path / "postgres"

    @property
    def blobs(self) -> Path:
        return self.path / "blobs"

    @property
    def node(self) -> Path:
        return self.path / "node"

    def node_name(self) -> str:
        """Made once from the machine's name; stays with the folder, whatever the machine is called later."""
        file = self.path / "node-name"
        try:
            return file.read_text(encoding="utf-8").strip()
        except FileNotFoundError:
            host = re.sub(r"[^A-Za-z0-9-]+", "-", socket.gethostname()).strip("-") or "node"
            write_private(file, f"{host[:60]}-{secrets.token_hex(3)}\n")
            return file.read_text(encoding="utf-8").strip()

    @property
    def owner_token(self) -> Path:
        return self.path / "owner-token"

    def read_owner_token(self) -> str | None:
        """The owner's token; None when there is none, or none this account may read. A link is not followed, and a file
        of another account than the folder's is not read: somebody could have put our token from elsewhere there."""
        try:
            handle = os.open(self.owner_token, os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK)
            with os.fdopen(handle, encoding="utf-8") as file:
                if os.fstat(handle).st_uid != self.path.stat().st_uid:
                    return None
                return file.read(1000).strip()
        except (FileNotFoundError, PermissionError):
            return None
        except UnicodeDecodeError:
            return None  # not what a server wrote: no token either
        except OSError as error:
            if error.errno == errno.ELOOP:
                return None
            raise MachineProblem(f"{self.owner_token} cannot be read: {error.strerror}.") from error

    def write_owner_token(self, secret: str) -> None:
        write_private(self.owner_token, secret + "\n")

    def create(self) -> None:
        """Make the folder if it is not there: private, but (as root) passable for PostgreSQL's account."""
        try:
            if os.geteuid() == 0:
                _make_passable(self.path)
            else:
                self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise MachineProblem(
                f"The data folder {self.path} cannot be made: {error.strerror}. Choose another with --data."
            ) from error
        if not os.access(self.path, os.W_OK | os.X_OK):
            raise MachineProblem(f"The data folder {self.path} is not writable. Choose another with --data.")

    def refuse_foreign(self) -> None:
        """Raise `Conflict` if the folder has anything that no contextbase put there."""
        try:
            names = sorted(entry.name for entry in self.path.iterdir())
        except FileNotFoundError:
            return
        except OSError as error:
            raise MachineProblem(f"The data folder {self.path} cannot be listed: {error.strerror}.") from error
        foreign = [name for name in names if name not in _OWN and not _OWN_LEFTOVER.fullmatch(name)]
        if foreign:
            more = f" and {len(foreign) - 3} more" if len(foreign) > 3 else ""
            raise Conflict(
                f"The folder {self.path} has files that are not contextbase's: "
                f"{', '.join(map(repr, foreign[:3]))}{more}. Choose an empty folder with --data, or move them away."
            )

    def holds_database(self) -> bool:
        return _is_there(self.postgres / "cluster" / "PG_VERSION")

    def is_in_use(self) -> bool:
        """Whether a server was ever started here: with an embedded database, or with one elsewhere."""
        return self.holds_database() or _is_there(self.key_file("audit"))

    @contextlib.contextmanager
    def lock(self) -> Iterator[None]:
        """Own the folder until the block ends; raises `Conflict` when another process does. Gone with the process."""
        try:
            handle = os.open(self.path / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
        except OSError as error:
            raise MachineProblem(f"{self.path / 'lock'} cannot be opened: {error.strerror}.") from error
        try:
            if not _flock(handle, fcntl.LOCK_EX, tries=5):  # a `holder` elsewhere holds it for an instant
                holder = _written_in(handle) or "unknown"
                raise Conflict(
                    f"Another contextbase process (pid {holder}) owns the data folder {self.path}. "
                    "Stop it first, or choose another folder with --data.",
                    process_id=holder,
                )
            os.ftruncate(handle, 0)
            os.pwrite(handle, f"{os.getpid()}\n".encode(), 0)
            yield
        finally:
            os.close(handle)

    def holder(self) -> str | None:
        """The pid of the process that holds the lock now; None when nobody does. Leaves no trace."""
        try:
            handle = os.open(self.path / "lock", os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW)
        except FileNotFoundError:
            return None
        try:
            return None if _flock(handle, fcntl.LOCK_SH) else _written_in(handle)
        finally:
            os.close(handle)

    def key_file(self, name: str) -> Path:
        return self.path / f"{name}.key"

    def secret_key(self, name: str) -> bytes:
        """A random key that lives in the folder; made the first time."""
        path = self.key_file(name)
        if not path.exists():
            write_private(path, secrets.token_hex(32) + "\n", replace=False)
        try:
            key = bytes.fromhex(path.read_text(encoding="ascii"))
        except (OSError, ValueError) as error:
            raise MachineProblem(f"The key {path} cannot be read: {error}.") from None
        if len(key) < 32:
            raise MachineProblem(f"The key {path} is not the 64 hex digits that were written; restore it.")
        return key

    def is_of_this_account(self) -> bool:
        """Whether nobody else made it, nor a link to it that is in its place."""
        try:
            return {self.path.stat().st_uid, self.path.lstat().st_uid} == {os.geteuid()}
        except FileNotFoundError:
            return False

    def announce(self, server: RunningServer) -> None:
        content = json.dumps({"url": server.url, "process_id": server.process_id}) + "\n"
        write_private(self.path / "server.json", content)

    def withdraw(self) -> None:
        (self.path / "server.json").unlink(missing_ok=True)

    def running_server(self) -> RunningServer | None:
        """The announced server, if the lock shows that it is alive: after a kill -9 an offline command may hold it,
        and who listens at the old address now must not be sent the owner's token."""
        try:
            announced = json.loads((self.path / "server.json").read_text(encoding="utf-8"))
            server = RunningServer(url=str(announced["url"]), process_id=int(announced["process_id"]))
            return server if self.holder() == str(server.process_id) else None
        except (FileNotFoundError, NotADirectoryError):
            return None
        except (ValueError, TypeError, KeyError):  # not what a server announces
            return None
        except OSError as error:
            raise MachineProblem(
                f"What runs in {self.path} cannot be read: {error.strerror}. Use the account that runs the server, or "
                "set CONTEXTBASE_URL and CONTEXTBASE_TOKEN."
            ) from error


def default_data_folder() -> Path:
    """`./.contextbase-data`; for root in a place closed to other accounts (such as below /root), where the embedded
    PostgreSQL could not run, a folder of this place's own below /var/lib/contextbase."""
    here = DEFAULT_DATA.absolute()
    if os.geteuid() != 0 or sys.platform != "linux" or _everyone_can_pass(here.parent):
        return here
    return _SHARED_FALLBACK / sha256(os.fsencode(here)).hexdigest()[:12]


def write_private(path: Path, content: str, *, replace: bool = True) -> None:
    """Durably write a 0600 file: readers see the old content or the new, never a part. Without `replace`, one that is
    there already is kept."""
    temporary = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
            file.flush()
            flush(file.fileno())
        if replace:
            temporary.replace(path)
        else:
            with contextlib.suppress(FileExistsError):
                path.hardlink_to(temporary)
            temporary.unlink()
        flush_folder(path.parent)
    except OSError as error:
        temporary.unlink(missing_ok=True)
        reason = "the disk is full" if error.errno == errno.ENOSPC else error.strerror
        raise MachineProblem(f"{path} cannot be written: {reason}.") from error


def _make_passable(folder: Path) -> None:
    """Make what is missing of it 0711, whatever the umask says: PostgreSQL's account must get through."""
    if folder.is_dir():
        return
    if folder.parent != folder:
        _make_passable(folder.parent)
    folder.mkdir(mode=0o711, exist_ok=True)
    folder.chmod(0o711)


def _written_in(handle: int) -> str:
    return os.pread(handle, 32, 0).decode(errors="replace").strip()


def _flock(handle: int, kind: int, *, tries: int = 1) -> bool:
    """Whether we have the lock now."""
    for left in reversed(range(tries)):
        try:
            fcntl.flock(handle, kind | fcntl.LOCK_NB)
            return True
        except BlockingIOError:
            time.sleep(0.02 if left else 0)
    return False


def _is_there(path: Path) -> bool:
    try:
        return path.exists()
    except OSError:  # perhaps, but this account cannot use it
        return False


def _everyone_can_pass(folder: Path) -> bool:
    return all(place.stat().st_mode & 0o001 for place in (folder, *folder.parents))
