"""What people and agents do to single files of an open workspace through us, while its programs may be at work in it.

Everything is relative to a handle of the folder: no link is followed, and nothing outside is reached. A file is written
beside the others first, in `.contextbase/tmp/`, and takes its place at once, when it is on the disk.
"""

import errno
import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.durable import flush
from contextbase.errors import Conflict, ContextbaseError, InvalidPath, MachineProblem, NotFound, TooLarge
from contextbase.ids import ContentHash, TreePath
from contextbase.workspaces.editor import FolderEditor
from contextbase.workspaces.folder import hash_of, remove_tree, signature_of
from contextbase.workspaces.syscalls import Rename, rename

__all__ = ["FileEditor", "StagedFile"]

_TEMPORARY: Final = "tmp"
_NEW: Final = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class StagedFile:
    """A file on its way: `write` it piece by piece, and give the same pieces to `hash_more`, in another thread if you
    like; then put it somewhere, or drop it."""

    def __init__(self, name: str, descriptor: int) -> None:
        self.name = name
        self.descriptor = descriptor
        self.size = 0
        self._digest = hashlib.sha256()

    @property
    def hash(self) -> ContentHash:
        return ContentHash(self._digest.digest())

    def write(self, piece: bytearray) -> None:
        left = memoryview(piece)
        while left:
            left = left[os.write(self.descriptor, left) :]
        self.size += len(piece)

    def hash_more(self, piece: bytearray) -> None:
        self._digest.update(piece)


class FileEditor(FolderEditor):
    """Every method blocks. Raises `NotFound`, `Conflict`, `InvalidPath` (a link on the way) or `TooLarge` (no room)."""

    def look(self, path: TreePath) -> os.stat_result | None:
        """What stands at the path; a link there is not followed, and one on the way is `InvalidPath`."""
        with self._explained(path), suppress(FileNotFoundError):
            try:
                with self.parent_of(path, make=False) as parent:
                    return os.stat(path.name, dir_fd=parent, follow_symlinks=False)
            except NotADirectoryError:
                if self._leads_through_link(path):
                    raise
        return None

    def open_file(self, path: TreePath) -> int:
        """A descriptor of the plain file at the path."""
        with self._explained(path):
            return self._root.open_file(path)

    def link_target(self, path: TreePath) -> bytes:
        with self._explained(path):
            return self._root.link_target(path)

    def start_of(self, path: TreePath, most: int) -> bytes | None:
        """The first bytes of a file; None if there is no plain file, or none that can be read."""
        with suppress(OSError):
            return self._root.read(path, most=most)
        return None

    def hash_at(self, path: TreePath) -> tuple[ContentHash, os.stat_result]:
        """Of a file's content, or a link's target; and the status that it had then."""
        with self._explained(path):
            status = self.look(path)
            if status is not None and stat.S_ISLNK(status.st_mode):
                return ContentHash.of(self._root.link_target(path)), status
            file = self._root.open_file(path)
            try:
                status = os.fstat(file)
                return hash_of(file, expected=status.st_size).hash, status
            finally:
                os.close(file)

    @contextmanager
    def staged(self, path: TreePath) -> Iterator[StagedFile]:
        """A file that is to stand at the path. If it is not put there, it is gone when the block ends."""
        name = uuid4().hex
        with self._explained(path), self.own_folder(_TEMPORARY) as folder:
            descriptor = os.open(name, _NEW, 0o600, dir_fd=folder)
            try:
                yield StagedFile(name, descriptor)
            finally:
                os.close(descriptor)
                with suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=folder)

    def append(self, file: StagedFile, path: TreePath, piece: bytearray) -> None:
        with self._explained(path):
            file.write(piece)

    def finish(self, file: StagedFile, path: TreePath, *, executable: bool) -> None:
        """On the disk, and the agent's, before anybody sees it."""
        with self._explained(path):
            os.fchmod(file.descriptor, 0o755 if executable else 0o644)
            self._hand_over(file.descriptor)
            flush(file.descriptor)

    def put_new(self, file: StagedFile, path: TreePath) -> None:
        """Raises `FileExistsError`, and changes nothing, if anything stands there."""
        with self._explained(path), self.own_folder(_TEMPORARY) as folder, self.parent_of(path, make=True) as parent:
            rename(file.name, path.name, Rename.NOREPLACE, source_folder=folder, target_folder=parent)
            flush(parent)

    def put_over(self, file: StagedFile, path: TreePath, seen: os.stat_result | None) -> bool:
        """Put it where just this file or link stands (None: nothing); False, and nothing is changed, if that is another
        by now. A program that writes in this very instant is not noticed, as with every other program."""
        with self._explained(path), self.own_folder(_TEMPORARY) as folder, self.parent_of(path, make=True) as parent:
            if _signature_at(path.name, parent) != (None if seen is None else signature_of(seen)):
                return False
            os.rename(file.name, path.name, src_dir_fd=folder, dst_dir_fd=parent)
            flush(parent)
            return True

    def remove(self, path: TreePath, seen: os.stat_result) -> bool:
        """Remove just this file or link; False, and nothing is changed, if it is another by now."""
        with self._explained(path), self.parent_of(path, make=False) as parent:
            if _signature_at(path.name, parent) != signature_of(seen):
                return False
            os.unlink(path.name, dir_fd=parent)
            flush(parent)
            return True

    def drop_folder(self, path: TreePath, *, with_all: bool) -> None:
        """Raises `Conflict` for one that is not empty, unless `with_all` goes."""
        with self._explained(path), self.parent_of(path, make=False) as parent:
            try:
                os.rmdir(path.name, dir_fd=parent)
            except OSError as error:
                if error.errno != errno.ENOTEMPTY or not with_all:
                    raise
                self._remove_filled(path, parent)
            flush(parent)

    def _remove_filled(self, path: TreePath, parent: int) -> None:
        """Out of sight at once where the file system can rename it; then for good."""
        name = uuid4().hex
        with self.own_folder(_TEMPORARY) as folder:
            try:
                rename(path.name, name, Rename.NOREPLACE, source_folder=parent, target_folder=folder)
            except OSError as error:
                if error.errno != errno.EXDEV:
                    raise
                remove_tree(Path(f"/proc/self/fd/{parent}/{path.name}"))
            else:
                remove_tree(Path(f"/proc/self/fd/{folder}/{name}"))

    def move(self, path: TreePath, target: TreePath) -> None:
        """A file, link or folder with all in it. Raises `FileExistsError` if anything stands at the target."""
        with (
            self._explained(path),
            self.parent_of(path, make=False) as parent,
            self._explained(target),
            self.parent_of(target, make=True) as other,
        ):
            rename(path.name, target.name, Rename.NOREPLACE, source_folder=parent, target_folder=other)
            flush(parent)
            flush(other)

    def add_folder(self, path: TreePath) -> None:
        """With those it lies in; nothing is changed if it is there."""
        with self._explained(path), self._folder_below(self._descriptor, path, make=True) as folder:
            flush(folder)

    @contextmanager
    def _explained(self, path: TreePath) -> Iterator[None]:
        try:
            yield
        except FileExistsError:
            raise
        except OSError as error:
            number = error.errno or 0
            if number == errno.ENOTDIR and self._leads_through_link(path):
                number = errno.ELOOP
            kind, sentence = _PROBLEMS.get(number, (MachineProblem, f"{{path}} cannot be reached ({error.strerror})."))
            details = {"path": path, "rule": "link"} if kind is InvalidPath else {}
            raise kind(sentence.format(path=path), **details) from None

    def _leads_through_link(self, path: TreePath) -> bool:
        """Where a folder was expected."""
        for folder in path.folders:
            with suppress(OSError), self.parent_of(folder, make=False) as parent:
                return stat.S_ISLNK(os.stat(folder.name, dir_fd=parent, follow_symlinks=False).st_mode)
        return False


def _signature_at(name: str, folder: int) -> tuple[int, ...] | None:
    with suppress(FileNotFoundError):
        return signature_of(os.stat(name, dir_fd=folder, follow_symlinks=False))
    return None


_PROBLEMS: Final[dict[int, tuple[type[ContextbaseError], str]]] = {
    errno.ENOENT: (NotFound, "There is nothing at {path} in the workspace."),
    errno.ENOTDIR: (Conflict, "A part of the path {path} is a file, not a folder."),
    errno.EISDIR: (Conflict, "{path} is a folder."),
    errno.ENXIO: (Conflict, "{path} is not a plain file."),
    errno.ENOTEMPTY: (Conflict, "The folder {path} is not empty. Say that all in it may go as well."),
    errno.EINVAL: (Conflict, "{path} cannot be moved into itself."),
    errno.EXDEV: (Conflict, "The folder {path} cannot be renamed here as a whole; rename the files in it."),
    errno.ELOOP: (InvalidPath, "A part of the path {path} is a link. Links are not followed; write the plain path."),
    errno.EACCES: (Conflict, "The workspace's own permissions keep {path} closed."),
    errno.EPERM: (Conflict, "The workspace's own permissions keep {path} closed."),
    errno.EBUSY: (Conflict, "{path} is in use."),
    errno.ENAMETOOLONG: (InvalidPath, "The path {path} is too long for the file system."),
    errno.ENOSPC: (TooLarge, "There is no room left for {path} in the workspace."),
    errno.EDQUOT: (TooLarge, "There is no room left for {path} in the workspace."),
}
