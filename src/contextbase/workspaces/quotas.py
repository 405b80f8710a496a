"""What an agent may write, held by the file system: a workspace's folders are a project of it, with limits.

XFS has such projects when mounted with `pquota`, ext4 with `prjquota`; in both a new file belongs to its folder's
project, and a rename into another project's folder fails as one to another disk does. A project is known by a number
alone, so one is taken by being used: whoever finds that nothing else counts for the number has it, among all the
processes that share the disk, and it is free again with the last of its files, whoever removes them.
"""

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import SystemRandom
from typing import Final

from contextbase.durable import FULL
from contextbase.errors import TooBusy
from contextbase.workspaces.model import Quota
from contextbase.workspaces.syscalls import (
    ProjectUse,
    bound_by_quotas,
    limit_project,
    project_of,
    project_use,
    set_project,
)

__all__ = ["ProjectQuotas", "open_quotas", "refusal_of_quotas"]

_FIRST: Final = 0x6362_0000
"""Above what administrators and container engines give out."""
_MOST: Final = 1 << 16
"""Few enough that they come round again: XFS keeps a record of every number that was ever used."""
_ROOM: Final = Quota(bytes=1 << 20, files=64)
"""For what is not the agent's: the kernel's own folder, notices, what was refused."""
_NOTHING: Final = ProjectUse()


class ProjectQuotas:
    """Every method blocks for some microseconds."""

    def __init__(self, quota: Quota) -> None:
        self._quota = quota
        self._next = SystemRandom().randrange(_MOST)

    def gather(self, *folders: str) -> None:
        """Make these new, empty folders a project of their own, as yet without limits."""
        first, *others = folders
        with _opened(first) as folder:
            project = self._take(folder)
        for other in others:
            with _opened(other) as folder:
                set_project(folder, project)

    def join(self, folder: str, *, other: str) -> None:
        """A new folder counts for the project of the other, if that has one."""
        with _opened(other) as known, _opened(folder) as new:
            project = _ours(known)
            if project is not None:
                set_project(new, project)

    def limit(self, folder: str) -> None:
        """What is in its project now is given; the quota is for what comes."""
        with _opened(folder) as descriptor:
            project = _ours(descriptor)
            if project is None:
                return
            use = project_use(descriptor, project)
            limit_project(
                descriptor,
                project,
                most_bytes=use.bytes + self._quota.bytes + _ROOM.bytes,
                most_files=use.files + self._quota.files + _ROOM.files,
            )

    @contextmanager
    def with_room(self, folder: str) -> Iterator[None]:
        """A little more than its limits until the block ends, for what must succeed in a full workspace, too. A crash
        leaves it that little."""
        with _opened(folder) as descriptor:
            project = _ours(descriptor)
            use = _NOTHING if project is None else project_use(descriptor, project)
            if project is None or not use.most_files:
                yield
                return
            limit_project(
                descriptor,
                project,
                most_bytes=max(use.bytes, use.most_bytes) + _ROOM.bytes,
                most_files=max(use.files, use.most_files) + _ROOM.files,
            )
            try:
                yield
            finally:
                limit_project(descriptor, project, most_bytes=use.most_bytes, most_files=use.most_files)

    def lift(self, folder: str) -> None:
        """Before the folder is removed: afterwards the project may be another's."""
        with _opened(folder) as descriptor:
            project = _ours(descriptor)
            if project is not None:
                limit_project(descriptor, project, most_bytes=0, most_files=0)

    def _take(self, folder: int) -> int:
        for _ in range(_MOST):
            self._next = (self._next + 1) % _MOST
            project = _FIRST + self._next
            if project_use(folder, project) != _NOTHING:
                continue
            set_project(folder, project)
            if project_use(folder, project).files == 1:
                return project
        set_project(folder, 0)
        raise TooBusy(f"All {_MOST} projects of the file system that workspaces may use are taken; end some first.")


def open_quotas(root: Path, quota: Quota) -> ProjectQuotas | None:
    """None where the file system of `root` holds none."""
    return ProjectQuotas(quota) if refusal_of_quotas(root) is None else None


def refusal_of_quotas(root: Path) -> str | None:
    """Why the file system of `root` cannot hold a quota while files are written, found out by going beyond one in a
    folder there; None: it can."""
    try:
        with _opened(str(root)) as folder:
            project_use(folder, _FIRST)
    except OSError:
        return "the file system has no project quotas"
    with tempfile.TemporaryDirectory(dir=root, prefix="probe-") as name:
        held, elsewhere = Path(name, "held"), Path(name, "elsewhere")
        held.mkdir()
        elsewhere.mkdir()
        quotas = ProjectQuotas(Quota(bytes=4096, files=1))
        try:
            quotas.gather(str(held))
            quotas.limit(str(held))
            try:
                flaw = _flaw_of(held)
                held.rename(elsewhere / "held")
                quotas.lift(str(elsewhere / "held"))
            except OSError:
                quotas.lift(str(held))
                raise
        except OSError as error:
            return f"its project quotas cannot be used: {error.strerror}"
    return flaw


def _flaw_of(held: Path) -> str | None:
    with bound_by_quotas():
        if not _is_stopped(held, files=1, size=4 * _ROOM.bytes):
            return "its project quotas do not stop a file that is too large"
        if not _is_stopped(held, files=4 * _ROOM.files, size=0):
            return "its project quotas do not stop too many files"
    return None


def _is_stopped(held: Path, *, files: int, size: int) -> bool:
    try:
        for number in range(files):
            (held / str(number)).write_bytes(b"x" * size)
    except OSError as error:
        if error.errno in FULL:
            return True
        raise
    finally:
        for file in held.iterdir():
            file.unlink()
    return False


def _ours(folder: int) -> int | None:
    """None: it was made where, or when, there were no quotas."""
    project = project_of(folder)
    return project if _FIRST <= project < _FIRST + _MOST else None


@contextmanager
def _opened(folder: str) -> Iterator[int]:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        yield descriptor
    finally:
        os.close(descriptor)
