"""A folder that somebody else may change while we look: everything is relative to its handle and cannot leave it."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from contextbase.errors import NotFound
from contextbase.ids import TreePath
from contextbase.workspaces.syscalls import open_beneath

__all__ = ["Folder", "attribute_of", "open_in", "remove_tree"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe must not hang us
_NO_ATTRIBUTE: Final = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOENT}

_NO_FILE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENXIO, errno.EXDEV}


class Folder:
    """Paths are relative, `/`-separated and as Python decodes them; '' is the folder itself."""

    def __init__(self, path: Path) -> None:
        self._descriptor = os.open(path, _FOLDER)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    def listing(self, path: str) -> list[tuple[str, os.stat_result]]:
        """Names with their status, as far as they are still there once asked for it."""
        found = []
        with self._opened(path, _FOLDER) as folder, os.scandir(folder) as entries:
            for entry in entries:
                with contextlib.suppress(FileNotFoundError):  # gone since: a later look decides
                    found.append((entry.name, entry.stat(follow_symlinks=False)))
        return found

    def open_file(self, path: str) -> int:
        """A descriptor of the plain file at the path; `OSError` for anything else, a link above all."""
        descriptor = open_beneath(self._descriptor, os.fsencode(path), _FILE)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise OSError(errno.ENXIO, "not a plain file", path)
        return descriptor

    def link_target(self, path: str) -> bytes:
        parent, _, name = path.rpartition("/")
        with self._opened(parent, _FOLDER) as folder:
            return os.readlink(os.fsencode(name), dir_fd=folder)

    def attribute(self, path: str, name: str) -> bytes | None:
        """An extended attribute of a folder."""
        with self._opened(path, _FOLDER) as folder:
            return attribute_of(folder, name)

    @contextlib.contextmanager
    def _opened(self, path: str, flags: int) -> Iterator[int]:
        descriptor = open_beneath(self._descriptor, os.fsencode(path) or b".", flags)
        try:
            yield descriptor
        finally:
            os.close(descriptor)


def attribute_of(descriptor: int, name: str) -> bytes | None:
    try:
        return os.getxattr(descriptor, name)
    except OSError as error:
        if error.errno in _NO_ATTRIBUTE:
            return None
        raise


def open_in(root: Path, path: TreePath) -> int:
    """A descriptor of a file below an agent's folder, itself and not through a link; `NotFound` if there is none."""
    try:
        with Folder(root) as folder:
            return folder.open_file(path)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise NotFound(f"There is no file {path} in the workspace.", path=path) from error
        raise


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it, however deep and whatever the names; harmless when it is gone already.

    Subfolders are first moved up beside each other, so that neither the stack nor the open files grow with the depth.
    """
    try:
        parent = os.open(path, _FOLDER)
    except FileNotFoundError:
        return
    numbers = count()
    try:
        waiting = _emptied(parent, b".", parent, numbers)
        while waiting:
            name = waiting.pop()
            waiting += _emptied(parent, name, parent, numbers)
            os.rmdir(name, dir_fd=parent)
    finally:
        os.close(parent)
    path.rmdir()


def _emptied(parent: int, name: bytes, top: int, numbers: "count[int]") -> list[bytes]:
    """Unlink the folder's files and move its folders to the top; the new names of those that were not empty."""
    moved = []
    folder = os.open(name, _FOLDER, dir_fd=parent)
    try:
        os.fchmod(folder, 0o700)
        with os.scandir(folder) as entries:
            names = [os.fsencode(entry.name) for entry in entries]
        for raw in names:
            if not stat.S_ISDIR(os.stat(raw, dir_fd=folder, follow_symlinks=False).st_mode):
                os.unlink(raw, dir_fd=folder)
                continue
            try:
                os.rmdir(raw, dir_fd=folder)
            except OSError as error:
                if error.errno not in (errno.ENOTEMPTY, errno.EEXIST):
                    raise
                moved.append(_moved(raw, folder, top, numbers))
    finally:
        os.close(folder)
    return moved


def _moved(name: bytes, folder: int, top: int, numbers: "count[int]") -> bytes:
    for number in numbers:
        target = b".contextbase-removed-%d" % number
        try:
            # The place is made first: a rename onto a folder of the agent's with that name would fail or eat it.
            os.mkdir(target, 0o700, dir_fd=top)
        except FileExistsError:
            continue
        os.rename(name, target, src_dir_fd=folder, dst_dir_fd=top)
        return target
    raise AssertionError("the numbers do not end")
