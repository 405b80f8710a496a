"""A folder read and written through its handle: no link is followed, and nothing outside is touched."""

import contextlib
import errno
import os
import stat
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from contextbase.durable import flush
from contextbase.errors import InvalidPath
from contextbase.ids import RESERVED_FOLDER, ContentHash, TreePath
from contextbase.merge import EntryKind
from contextbase.standalone.model import FileRecord
from contextbase.workspaces.folder import Folder, hash_of, listing_of, signature_of

__all__ = ["FoundEntry", "Tree", "parent_of"]

_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
_NOT_THERE: Final = {errno.ENOENT, errno.ENOTDIR, errno.ELOOP}
_KINDS: Final = {stat.S_IFREG: EntryKind.FILE, stat.S_IFLNK: EntryKind.SYMLINK, stat.S_IFDIR: EntryKind.DIRECTORY}


@dataclass(frozen=True, kw_only=True, slots=True)
class FoundEntry:
    kind: EntryKind | None  # None: neither a file, a folder nor a link
    mode: int  # permission bits; 0 for a link
    size: int
    owner: tuple[int, int]
    stamp: tuple[int, ...]  # another one after every change

    @classmethod
    def of(cls, status: os.stat_result) -> "FoundEntry":
        kind = _KINDS.get(stat.S_IFMT(status.st_mode))
        return cls(
            kind=kind,
            mode=0 if kind is EntryKind.SYMLINK else status.st_mode & 0o777,
            size=status.st_size,
            owner=(status.st_uid, status.st_gid),
            stamp=signature_of(status),
        )


class Tree(Folder):
    def find(self, path: str) -> FoundEntry | None:
        """None also when a link, or a file, stands where a folder of the path should be."""
        parent, name = parent_of(path)
        try:
            with self.opened(parent) as folder:
                return FoundEntry.of(os.stat(name, dir_fd=folder, follow_symlinks=False))
        except OSError as error:
            if error.errno in _NOT_THERE:
                return None
            raise

    def record(self, path: str) -> tuple[FileRecord, FoundEntry]:
        """A file or link as it is, and its looks before it was read; `OSError` for anything else."""
        found = self.find(path)
        if found is not None and found.kind is EntryKind.SYMLINK:
            content = ContentHash.of(self.link_target(path))
            return FileRecord(kind=EntryKind.SYMLINK, content=content, mode=0), found
        file = self.open_file(path)
        try:
            found = FoundEntry.of(os.fstat(file))
            content = hash_of(file).hash
        finally:
            os.close(file)
        return FileRecord(kind=EntryKind.FILE, content=content, mode=found.mode), found

    def walk(
        self, top: str, *, left_out: dict[str, str], ignores: Callable[[str, bool], bool] = lambda _path, _folder: False
    ) -> Iterator[tuple[TreePath, FoundEntry]]:
        """All below a folder, folders before what is in them. Names that no path can have, and folders that cannot be
        read, go to `left_out`; contextbase's own folder is passed over."""
        waiting = [top]
        while waiting:
            above = waiting.pop()
            try:
                with self.opened(above) as folder:
                    entries = sorted(listing_of(folder))
            except OSError as error:
                left_out[above] = f"It cannot be read: {error.strerror}."
                continue
            for name, status in entries:
                if not above and name.casefold() == RESERVED_FOLDER:
                    continue
                try:
                    path = TreePath(f"{above}/{name}" if above else name)
                except InvalidPath as error:
                    left_out[f"{above}/{name}" if above else name] = error.message
                    continue
                found = FoundEntry.of(status)
                is_folder = found.kind is EntryKind.DIRECTORY
                if ignores(path, is_folder):
                    continue
                if is_folder:
                    waiting.append(path)
                yield path, found

    def make_folder(self, path: str) -> None:
        """With what is missing above it; there to stay when this returns."""
        found = self.find(path) if path else None
        if not path or (found is not None and found.kind is EntryKind.DIRECTORY):
            return
        parent, name = parent_of(path)
        self.make_folder(parent)
        with self.opened(parent) as folder:
            with contextlib.suppress(FileExistsError):  # a file there is found out by who opens the folder
                os.mkdir(name, dir_fd=folder)
                if os.geteuid() == 0:  # as it would be, had the folder's owner made it
                    os.chown(name, *FoundEntry.of(os.fstat(folder)).owner, dir_fd=folder, follow_symlinks=False)
            flush(folder)

    @contextlib.contextmanager
    def new_file(self, path: str) -> Iterator[int]:
        """A descriptor to fill, for nobody else to read until its mode is set."""
        parent, name = parent_of(path)
        with self.opened(parent) as folder:
            descriptor = os.open(name, _NEW_FILE, 0o600, dir_fd=folder)
        try:
            yield descriptor
        finally:
            os.close(descriptor)

    def make_link(self, path: str, target: bytes, *, owner: tuple[int, int] | None = None) -> None:
        parent, name = parent_of(path)
        with self.opened(parent) as folder:
            os.symlink(target, os.fsencode(name), dir_fd=folder)
            if owner is not None:
                os.chown(name, *owner, dir_fd=folder, follow_symlinks=False)

    def remove(self, path: str) -> None:
        """A file, a link or an empty folder; harmless when there is none."""
        parent, name = parent_of(path)
        found = self.find(path)
        if found is None:
            return
        with self.opened(parent) as folder:
            if found.kind is EntryKind.DIRECTORY:
                os.rmdir(name, dir_fd=folder)
            else:
                os.unlink(name, dir_fd=folder)


def parent_of(path: str) -> tuple[str, str]:
    """The folder ('' at the top) and the name."""
    parent, _, name = path.rpartition("/")
    return parent, name
