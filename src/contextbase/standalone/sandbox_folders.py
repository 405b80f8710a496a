"""Where sandboxes lie on this machine, and whose they are.

<root>/<worker>/.sandbox-metadata.json   what it is, and what it was given
<root>/<worker>/.sync-journal            only while a sync is under way
<root>/<worker>/files/                   where the worker works
<root>/<worker>/given/<hash>             the contents its changes are measured against
<root>/<worker>/home/, tmp/              its HOME and TMPDIR
<root>/.removed/                         on their way out
"""

import fcntl
import os
import re
import time
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.durable import explained
from contextbase.errors import Conflict, Damaged, InvalidInput, NotFound
from contextbase.standalone.contents import ContentFolder
from contextbase.standalone.metadata import METADATA_FILE, Metadata
from contextbase.standalone.model import StandaloneInfo, StandaloneState
from contextbase.standalone.tree import Tree
from contextbase.workspaces.folder import remove_tree

__all__ = ["SandboxFolder", "SandboxFolders", "default_root"]

_WORKER_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_REMOVED: Final = ".removed"
_TRIES: Final = 5
_PAUSE: Final = 0.02


def default_root() -> Path:
    return Path.home() / ".contextbase" / "sandbox"


class SandboxFolder:
    """One sandbox's folder, held by this object until it is let go; then anyone may have it."""

    def __init__(self, path: Path, lock: int) -> None:
        self.path = path
        self._lock: int | None = lock

    @property
    def files(self) -> Path:
        return self.path / "files"

    @property
    def home(self) -> Path:
        return self.path / "home"

    @property
    def temporary(self) -> Path:
        return self.path / "tmp"

    def has_metadata(self) -> bool:
        return (self.path / METADATA_FILE).exists()

    def contents(self) -> ContentFolder:
        return ContentFolder(self.path / "given")

    def open_files(self) -> Tree:
        try:
            return Tree(self.files)
        except OSError as error:  # all of it deleted would be the worst guess
            raise Damaged(
                f"{self.files} is gone or is no longer a folder ({error.strerror}); nothing is synced."
            ) from error

    def make(self) -> None:
        """`Damaged` when somebody has worked here, and what it was given is not known any more."""
        for folder in (self.files, self.home, self.temporary, self.path / "given"):
            folder.mkdir(mode=0o700, exist_ok=True)
        if any(self.files.iterdir()):
            raise Damaged(
                f"{self.path} has files, but no {METADATA_FILE}. Save what you need from it, "
                "then `contextbase worker clean --discard` removes it."
            )

    def remove(self) -> None:
        """At once for everyone who looks, then for good."""
        removed = self.path.parent / _REMOVED / f"{self.path.name}.{uuid4().hex}"
        removed.parent.mkdir(mode=0o700, exist_ok=True)
        self.path.rename(removed)
        remove_tree(removed)
        self.let_go()

    def let_go(self) -> None:
        if self._lock is not None:
            os.close(self._lock)
            self._lock = None


class SandboxFolders:
    def __init__(self, root: Path) -> None:
        self._root = root.absolute()

    def claim(self, worker_id: str, *, make: bool) -> SandboxFolder:
        """The folder of a worker's sandbox, for us alone; `Conflict` when a process has it, `NotFound` when there is
        none and none is to be made."""
        path = self._path(worker_id)
        with explained(self._root):
            for _ in range(_TRIES):
                if make:
                    path.mkdir(mode=0o700, parents=True, exist_ok=True)
                try:
                    lock = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
                except FileNotFoundError:
                    if make:
                        continue  # removed a moment ago
                    raise NotFound(f"There is no sandbox of {worker_id}: see `contextbase worker list`.") from None
                if _locked(lock, fcntl.LOCK_EX) and _is_at(path, lock):
                    return SandboxFolder(path, lock)
                os.close(lock)
                time.sleep(_PAUSE)  # who lists sandboxes holds each for an instant
        raise Conflict(f"The sandbox of {worker_id} is in use. Wait for whoever has it, or choose another name.")

    def list(self) -> list[StandaloneInfo]:
        if not self._root.is_dir():
            return []
        with explained(self._root):
            names = sorted(entry.name for entry in self._root.iterdir() if _WORKER_ID.fullmatch(entry.name))
            return [self._info(name) for name in names]

    def remove_leftovers(self) -> int:
        """What removals that did not come to their end left; how many there were."""
        leftovers = list((self._root / _REMOVED).glob("*"))
        with explained(self._root):
            for leftover in leftovers:
                remove_tree(leftover)
        return len(leftovers)

    def _path(self, worker_id: str) -> Path:
        if not _WORKER_ID.fullmatch(worker_id):
            raise InvalidInput(
                f"{worker_id[:80]!r} is not a worker's name: use letters, digits, '.', '_' and '-', 64 at the most, "
                "and a letter or digit first."
            )
        return self._root / worker_id

    def _info(self, worker_id: str) -> StandaloneInfo:
        path = self._root / worker_id
        try:
            metadata = Metadata.read(path)
        except (Damaged, OSError):
            return StandaloneInfo(worker_id=worker_id, state=StandaloneState.BROKEN, path=path)
        state = StandaloneState.FINISHED if metadata.is_finished else StandaloneState.IDLE
        return StandaloneInfo(
            worker_id=worker_id,
            state=StandaloneState.IN_USE if _is_in_use(path) else state,
            path=path,
            task_id=metadata.task_id,
            base_dir=metadata.base_dir,
            files=len(metadata.files),
            created_at=metadata.created_at,
        )


def _locked(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_at(path: Path, descriptor: int) -> bool:
    """Whether the folder was not removed before we had its lock."""
    try:
        return os.path.samestat(path.stat(follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _is_in_use(path: Path) -> bool:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _locked(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)
