"""A folder that somebody else may change while we look: everything is relative to its handle and cannot leave it."""

import contextlib
import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Final, NamedTuple, Self

from contextbase.ids import ContentHash
from contextbase.workspaces.syscalls import open_beneath

__all__ = [
    "Folder",
    "HashedFile",
    "attribute_of",
    "hash_of",
    "listing_of",
    "open_file_in",
    "remove_tree",
    "signature_of",
    "unshut",
]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC  # a pipe must not hang us
_NO_ATTRIBUTE: Final = {errno.ENODATA, errno.EOPNOTSUPP, errno.ENOENT}

_DEEPEST: Final = 64
_PIECE: Final = 1 << 20


class Folder:
    """Paths are relative, `/`-separated and as Python decodes them; '' is the folder itself."""

    def __init__(self, path: Path | str) -> None:
        self._descriptor = os.open(path, _FOLDER)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)

    @property
    def descriptor(self) -> int:
        return self._descriptor

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[int]:
        """The descriptor of a folder."""
        descriptor = open_beneath(self._descriptor, os.fsencode(path) or b".", _FOLDER)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def open_file(self, path: str) -> int:
        """A descriptor of the plain file at the path; `OSError` for anything else, a link above all."""
        return _plain_file(open_beneath(self._descriptor, os.fsencode(path), _FILE), path)

    def read(self, path: str, *, most: int) -> bytes:
        """A plain file's bytes, no more of them than `most`."""
        with os.fdopen(self.open_file(path), "rb") as file:
            return file.read(most)

    def link_target(self, path: str) -> bytes:
        parent, _, name = path.rpartition("/")
        with self.opened(parent) as folder:
            return os.readlink(os.fsencode(name), dir_fd=folder)


def open_file_in(folder: int, name: str) -> int:
    """As `Folder.open_file`, for a name in an open folder: it cannot lead elsewhere, so no path is followed."""
    return _plain_file(os.open(name, _FILE, dir_fd=folder), name)


def _plain_file(descriptor: int, path: str) -> int:
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.ENXIO, "not a plain file", path)
    return descriptor


def listing_of(descriptor: int) -> list[tuple[str, os.stat_result]]:
    """A folder's names with their status, as far as they are still there once asked for it."""
    found = []
    with os.scandir(descriptor) as entries:
        for entry in entries:
            try:
                found.append((entry.name, entry.stat(follow_symlinks=False)))
            except FileNotFoundError:
                continue  # gone since: a later look decides
    return found


def signature_of(status: os.stat_result) -> tuple[int, ...]:
    """Another one after every change."""
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns, status.st_ctime_ns


def attribute_of(file: int | str, name: str) -> bytes | None:
    """Of an open file, or of what a path leads to, which is not followed if it is a link."""
    try:
        return os.getxattr(file, name) if isinstance(file, int) else os.getxattr(file, name, follow_symlinks=False)
    except OSError as error:
        if error.errno in _NO_ATTRIBUTE:
            return None
        raise


class HashedFile(NamedTuple):
    hash: ContentHash
    size: int
    start: bytes  # of its content: at least the first MiB, or all there is


def hash_of(file: int, *, expected: int = _PIECE) -> HashedFile:
    """Read an open file; a small buffer will do where few bytes are expected."""
    digest = hashlib.sha256()
    size = 0
    start = b""
    asked = min(expected + 1, _PIECE)
    while piece := os.pread(file, asked, size):
        digest.update(piece)
        if size < _PIECE:
            start += piece
        size += len(piece)
        if len(piece) < asked:
            break  # its end; who writes on meanwhile shows in its status
    return HashedFile(hash=ContentHash(digest.digest()), size=size, start=start)


def remove_tree(path: Path) -> None:
    """Remove a folder with all in it, however deep and whatever the names; harmless when it is gone already."""
    try:
        top = _opened_to_empty(path)
    except FileNotFoundError:
        return
    try:
        _Removal(top).run()
    finally:
        os.close(top)
    path.rmdir()


def unshut(name: bytes | str | Path, parent: int | None = None) -> None:
    """Let the owner, who is not root, back into a folder. Of whatever has the name by then, a link apart."""
    handle = os.open(name, _FOLDER | os.O_PATH, dir_fd=parent)
    try:
        os.chmod(f"/proc/self/fd/{handle}", 0o700)  # noqa: PTH101 - the only way to the mode of such a handle
    finally:
        os.close(handle)


def _opened_to_empty(name: bytes | Path, parent: int | None = None) -> int:
    try:
        return os.open(name, _FOLDER, dir_fd=parent)
    except PermissionError:
        unshut(name, parent)
    return os.open(name, _FOLDER, dir_fd=parent)


class _Removal:
    """Goes down by handles. What lies too deep is moved to the top first, so that neither the stack nor the number of
    open files grows with the depth."""

    def __init__(self, top: int) -> None:
        self._top = top
        self._numbers = count()
        self._moved: list[bytes] = []

    def run(self) -> None:
        self._empty(self._top, depth=0)
        while self._moved:
            self._remove_folder(self._moved.pop(), self._top, depth=1)

    def _empty(self, folder: int, *, depth: int) -> None:
        os.fchmod(folder, 0o700)
        with os.scandir(folder) as entries:
            found = [(os.fsencode(entry.name), entry.is_dir(follow_symlinks=False)) for entry in entries]
        for name, is_folder in found:
            if not is_folder:
                os.unlink(name, dir_fd=folder)
            elif depth < _DEEPEST:
                self._remove_folder(name, folder, depth=depth + 1)
            else:
                self._move_up(name, folder)

    def _remove_folder(self, name: bytes, parent: int, *, depth: int) -> None:
        folder = _opened_to_empty(name, parent)
        try:
            self._empty(folder, depth=depth)
        finally:
            os.close(folder)
        os.rmdir(name, dir_fd=parent)

    def _move_up(self, name: bytes, folder: int) -> None:
        target = b""
        while not target:
            candidate = b".contextbase-removed-%d" % next(self._numbers)
            # The place is made first: a rename onto something of the agent's with that name would fail or eat it.
            with contextlib.suppress(FileExistsError):
                os.mkdir(candidate, 0o700, dir_fd=self._top)
                target = candidate
        os.rename(name, target, src_dir_fd=folder, dst_dir_fd=self._top)
        self._moved.append(target)
