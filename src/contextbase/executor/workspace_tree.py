"""Files of the workspace, reached through handles of its folders: no link leads out of it, whoever swaps what."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, BinaryIO, Final
from uuid import uuid4

__all__ = ["PathRefused", "WorkspaceTree"]

_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_KINDS: Final = {stat.S_IFREG: "file", stat.S_IFDIR: "directory", stat.S_IFLNK: "symlink"}


class PathRefused(Exception):
    """It does not name a file below the workspace; `is_missing`: nothing is there."""

    def __init__(self, message: str, *, is_missing: bool = False) -> None:
        super().__init__(message)
        self.is_missing = is_missing


class WorkspaceTree:
    def __init__(self, root: Path) -> None:
        self._root = root

    def entries(self, path: str, *, depth: int, most: int) -> tuple[list[dict[str, Any]], bool]:
        """What is below a folder, by name, and whether there is more."""
        found: list[dict[str, Any]] = []
        with self._folder(_parts(path)) as handle:
            for entry in _walked(handle, PurePosixPath(*_parts(path)), depth):
                if len(found) >= most:
                    return found, True
                found.append(entry)
        return found, False

    @contextlib.contextmanager
    def opened(self, path: str) -> Iterator[BinaryIO]:
        """A regular file."""
        *above, name = _named(path)
        with self._folder(above) as handle, _refused(path):
            descriptor = os.open(name, _FILE, dir_fd=handle)
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            os.close(descriptor)
            raise PathRefused(f"{path} is not a file.")
        with os.fdopen(descriptor, "rb") as file:
            yield file

    @contextlib.contextmanager
    def replaced(self, path: str) -> Iterator[BinaryIO]:
        """A new file that takes its place when the block ends well; folders above it are made."""
        *above, name = _named(path)
        with self._folder(above, makes=True) as handle, _refused(path):
            draft = f".{uuid4().hex}"  # whatever the name: it may have all the bytes that a name can have
            mode = _mode_of(handle, name)
            descriptor = os.open(draft, _NEW, mode, dir_fd=handle)
            try:
                with os.fdopen(descriptor, "wb") as file:
                    yield file
                    file.flush()
                    os.fchmod(descriptor, mode)
                    os.fsync(descriptor)
                os.replace(draft, name, src_dir_fd=handle, dst_dir_fd=handle)
            except BaseException:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(draft, dir_fd=handle)
                raise

    def folder(self, path: str, *, makes: bool) -> contextlib.AbstractContextManager[int]:
        """A handle of a folder; `makes`: it is made, with those above it."""
        return self._folder(_parts(path), makes=makes)

    @contextlib.contextmanager
    def _folder(self, parts: list[str], *, makes: bool = False) -> Iterator[int]:
        with contextlib.ExitStack() as stack, _refused("/".join(parts)):
            handle = os.open(self._root, _FOLDER)
            stack.callback(os.close, handle)
            for part in parts:
                if makes:
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=handle)
                handle = os.open(part, _FOLDER, dir_fd=handle)
                stack.callback(os.close, handle)
            yield handle


def _parts(path: str) -> list[str]:
    parts = [part for part in path.split("/") if part not in {"", "."}]
    if ".." in parts or "\0" in path:
        raise PathRefused(f"{path!r} is not a path below the workspace.")
    return parts


def _named(path: str) -> list[str]:
    parts = _parts(path)
    if not parts:
        raise PathRefused("The workspace itself is not a file.")
    return parts


@contextlib.contextmanager
def _refused(path: str) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError:
        raise PathRefused(f"There is no {path}.", is_missing=True) from None
    except OSError as error:
        if error.errno in {errno.ELOOP, errno.ENOTDIR, errno.EISDIR, errno.ENXIO, errno.ENAMETOOLONG, errno.EACCES}:
            raise PathRefused(f"{path} cannot be used: {error.strerror}.") from None
        raise


def _mode_of(handle: int, name: str) -> int:
    try:
        mode = os.stat(name, dir_fd=handle, follow_symlinks=False).st_mode
    except FileNotFoundError:
        return 0o644
    return stat.S_IMODE(mode) & 0o777 if stat.S_ISREG(mode) else 0o644


def _walked(handle: int, above: PurePosixPath, depth: int) -> Iterator[dict[str, Any]]:
    for name in sorted(os.listdir(handle)):
        try:
            status = os.stat(name, dir_fd=handle, follow_symlinks=False)
            kind = _KINDS.get(stat.S_IFMT(status.st_mode), "other")
            target = {"target": os.readlink(name, dir_fd=handle)} if kind == "symlink" else {}
        except OSError:
            continue  # gone meanwhile
        path = above / os.fsencode(name).decode(errors="replace")
        yield {"path": str(path), "kind": kind, "size": status.st_size, "mtime": status.st_mtime, **target}
        if kind == "directory" and depth > 1:
            try:
                below = os.open(name, _FOLDER, dir_fd=handle)
            except OSError:
                continue
            try:
                yield from _walked(below, path, depth - 1)
            finally:
                os.close(below)
