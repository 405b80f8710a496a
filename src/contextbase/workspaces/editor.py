"""Changes of ours in an agent's folder, while the agent may be at work in it.

Whatever is replaced is first compared with what it must be, after it was taken out of the way: what the agent wrote in
the meantime goes back to its place. Nothing is followed out of the folder. Each step can be the last one before a kill:
what was the agent's is then where `left_in` finds it, and the same change made again is done already.

.contextbase/refused/   what the gate did not take, at its own path
.contextbase/conflicts/ the sides of what could not be merged, in a folder for each path
.contextbase/replaced/  what was replaced by a merge: a program that still has it open writes here
.contextbase/tmp/       what is about to be put in place: nothing of the agent's
"""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Final, Self
from uuid import uuid4

from contextbase.ids import RESERVED_FOLDER, ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.folder import Folder, hash_of, listing_of
from contextbase.workspaces.in_the_way import IN_THE_WAY, UnlessInTheWay
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.ports import LocalContent
from contextbase.workspaces.syscalls import Rename, open_beneath, rename, sync_filesystem

__all__ = [
    "ADDED",
    "CONFLICTS",
    "NOTICES",
    "REFUSED",
    "REPLACED",
    "TEMPORARY",
    "FolderEditor",
    "content_at",
    "left_in",
]

NOTICES: Final = "notices.md"
REFUSED: Final = "refused"
CONFLICTS: Final = "conflicts"
REPLACED: Final = "replaced"
TEMPORARY: Final = "tmp"
ADDED: Final = "new-"
"""How the names of folders there begin that may be filled while a refresh is made."""
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_NAMES: Final = 10_000


class FolderEditor:
    """Every method blocks. Those that change the folder say whether they did; False means that it is as it was."""

    def __init__(self, root: Path, *, owner: Owner, must_have_room: bool = False) -> None:
        """`must_have_room`: what does not fit on the disk raises `MachineProblem`, instead of staying as it was."""
        self._root = Folder(root)
        self._must_have_room = must_have_room
        self._owner = owner if owner != Owner.of_this_process() else None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._root.__exit__(kind, error, trace)

    def unless_in_the_way(self) -> UnlessInTheWay:
        return UnlessInTheWay(must_have_room=self._must_have_room)

    def replace(
        self,
        path: TreePath,
        *,
        expected: FolderContent | None,
        content: FolderContent | None,
        source: LocalContent | None = None,
    ) -> bool:
        """Put `content` (None: nothing) where `expected` (None: nothing) stands. `source` holds a file's bytes, or a
        link's target."""
        with self.unless_in_the_way():
            if content is not None and content.kind is Kind.DIRECTORY:
                return expected is None and self.make_folder(path)
            if expected is not None and expected.kind is Kind.DIRECTORY:
                return self.remove_folder(path) and (
                    content is None or self.replace(path, expected=None, content=content, source=source)
                )
            with self.parent_of(path, make=content is not None) as parent:
                return self._replace_entry(path, parent, expected, content, source)
        return False

    def set_aside(self, path: TreePath, *, expected: FolderContent) -> str | None:
        """Move what stands at the path to `.contextbase/refused/`; returns where it is now, None if it was changed
        since."""
        with (
            self.unless_in_the_way(),
            self.parent_of(path, make=False) as parent,
            self._refused_beside(path) as refused,
        ):
            name = _moved(path.name, parent, refused)
            if content_at(refused, name) == expected:
                return f"{RESERVED_FOLDER}/{REFUSED}/{path.removesuffix(path.name)}{name}"
            with contextlib.suppress(FileExistsError):  # made again in this very moment: both are kept
                rename(name, path.name, Rename.NOREPLACE, source_folder=refused, target_folder=parent)
        return None

    def keep_folder(self, folder: str, name: str) -> str | None:
        """Move a folder from elsewhere to `.contextbase/refused/`; returns where it is now."""
        with self.unless_in_the_way(), self.own_folder(REFUSED) as refused:
            return f"{RESERVED_FOLDER}/{REFUSED}/{_moved(folder, None, refused, to=name)}"
        return None

    def add_note(self, name: str, text: str) -> bool:
        """Append to `.contextbase/<name>`."""
        with self.unless_in_the_way(), self.own_folder("") as folder:
            flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            file = os.open(name, flags, 0o644, dir_fd=folder)
            try:
                if not stat.S_ISREG(os.fstat(file).st_mode):
                    return False
                os.write(file, text.encode())
                self._hand_over(file)
            finally:
                os.close(file)
            return True
        return False

    def write_conflict(self, path: TreePath, name: str, content: LocalContent) -> bool:
        """`.contextbase/conflicts/<path>/<name>`, replaced if it is there."""
        with (
            self.unless_in_the_way(),
            self.own_folder(CONFLICTS) as conflicts,
            self._folder_below(conflicts, path, make=True) as folder,
        ):
            with contextlib.suppress(FileNotFoundError):
                os.unlink(name, dir_fd=folder)
            self.write_entry(folder, name, FolderContent(kind=Kind.FILE), content)
            return True
        return False

    def refused(self) -> list[str]:
        """What lies in `.contextbase/refused/`, as paths."""
        return sorted(path for path in self._files_below(REFUSED))

    def late_writes(self) -> list[str]:
        """What was written to files after a merge had replaced them, as places in the folder."""
        late = []
        for name in self._files_below(REPLACED):
            place = f"{RESERVED_FOLDER}/{REPLACED}/{name}"
            with self.unless_in_the_way():  # a link, or what the agent put there: no program writes on in it
                file = self._root.open_file(place)
                try:
                    if str(hash_of(file).hash) not in name.split("-"):
                        late.append(place)
                finally:
                    os.close(file)
        return late

    def has_entry(self, path: TreePath) -> bool:
        """Whether anything stands there."""
        with self.unless_in_the_way(), self.parent_of(path, make=False) as parent:
            os.stat(path.name, dir_fd=parent, follow_symlinks=False)
            return True
        return False

    def sync(self) -> None:
        """Everything in the folder is on the disk when this returns."""
        with self._root.opened("") as folder:
            sync_filesystem(folder)

    def _replace_entry(
        self,
        path: TreePath,
        parent: int,
        expected: FolderContent | None,
        content: FolderContent | None,
        source: LocalContent | None,
    ) -> bool:
        name = uuid4().hex
        with self.own_folder(REPLACED) as replaced, self.own_folder(TEMPORARY) as temporary:
            if content is None:
                kept = f"{name}-{expected.hash}" if expected is not None else ""
                return expected is None or self._take_out(path, parent, replaced, kept, expected)
            if content_at(parent, path.name) == content:
                return True
            try:
                self.write_entry(temporary, name, content, b"" if source is None else source)
                if expected is None:
                    rename(name, path.name, Rename.NOREPLACE, source_folder=temporary, target_folder=parent)
                    return True
                kept = f"{name}-{expected.hash}-{content.hash}"
                rename(name, kept, Rename.NOREPLACE, source_folder=temporary, target_folder=replaced)
            finally:
                with contextlib.suppress(FileNotFoundError):
                    os.unlink(name, dir_fd=temporary)
            done = False
            try:
                done = self._exchange(path, parent, replaced, kept, expected)
                return done
            finally:
                if not done and content_at(replaced, kept) == content:
                    os.unlink(kept, dir_fd=replaced)

    def _exchange(self, path: TreePath, parent: int, replaced: int, name: str, expected: FolderContent) -> bool:
        rename(name, path.name, Rename.EXCHANGE, source_folder=replaced, target_folder=parent)
        if content_at(replaced, name) == expected:
            return True
        try:
            rename(name, path.name, Rename.EXCHANGE, source_folder=replaced, target_folder=parent)
        except FileNotFoundError:  # ours is gone again: the place is free
            self._put_back(path, parent, replaced, name)
        return False

    def _take_out(self, path: TreePath, parent: int, replaced: int, name: str, expected: FolderContent) -> bool:
        try:
            rename(path.name, name, Rename.NOREPLACE, source_folder=parent, target_folder=replaced)
        except FileNotFoundError:
            return True
        if content_at(replaced, name) == expected:
            return True
        self._put_back(path, parent, replaced, name)
        return False

    def _put_back(self, path: TreePath, parent: int, replaced: int, name: str) -> None:
        try:
            rename(name, path.name, Rename.NOREPLACE, source_folder=replaced, target_folder=parent)
        except FileExistsError:  # made again in this very moment: both are kept
            with self._refused_beside(path) as refused:
                _moved(name, replaced, refused, to=path.name)

    @contextlib.contextmanager
    def _refused_beside(self, path: TreePath) -> Iterator[int]:
        """The folder in `.contextbase/refused/` that a version of the path goes to."""
        with self.own_folder(REFUSED) as refused, self._folder_below(refused, path.parent, make=True) as folder:
            yield folder

    def make_folder(self, path: TreePath) -> bool:
        with self._folder_below(self._descriptor, path, make=True):
            return True

    def remove_folder(self, path: TreePath) -> bool:
        with self.parent_of(path, make=False) as parent:
            os.rmdir(path.name, dir_fd=parent)
            return True

    def write_entry(self, folder: int, name: str, content: FolderContent, source: LocalContent) -> None:
        if content.kind is Kind.SYMLINK:
            target = source if isinstance(source, bytes) else source.read_bytes()
            os.symlink(target, os.fsencode(name), dir_fd=folder)
            if self._owner:
                os.chown(name, self._owner.uid, self._owner.gid, dir_fd=folder, follow_symlinks=False)
            return
        mode = 0o755 if content.executable else 0o644
        file = os.open(name, _NEW_FILE, mode, dir_fd=folder)
        try:
            if isinstance(source, bytes):
                _write_all(file, source)
            else:
                with source.open("rb") as read:
                    while piece := read.read(1 << 20):
                        _write_all(file, piece)
            if stat.S_IMODE(os.fstat(file).st_mode) != mode:  # this process makes files that others may not read
                os.fchmod(file, mode)
            self._hand_over(file)
        finally:
            os.close(file)

    def _hand_over(self, descriptor: int) -> None:
        if self._owner:
            os.fchown(descriptor, self._owner.uid, self._owner.gid)

    @property
    def _descriptor(self) -> int:
        return self._root.descriptor

    @contextlib.contextmanager
    def own_folder(self, name: str) -> Iterator[int]:
        place = TreePath.stored(f"{RESERVED_FOLDER}/{name}" if name else RESERVED_FOLDER)
        with self._folder_below(self._descriptor, place, make=True) as folder:
            yield folder

    @contextlib.contextmanager
    def parent_of(self, path: TreePath, *, make: bool) -> Iterator[int]:
        with self._folder_below(self._descriptor, path.parent, make=make) as folder:
            yield folder

    @contextlib.contextmanager
    def _folder_below(self, top: int, path: str | None, *, make: bool) -> Iterator[int]:
        here = os.dup(top)
        try:
            for part in path.split("/") if path else ():
                try:
                    below = open_beneath(here, os.fsencode(part), _FOLDER)
                except FileNotFoundError:
                    if not make:
                        raise
                    with contextlib.suppress(FileExistsError):
                        os.mkdir(part, 0o755, dir_fd=here)
                    below = open_beneath(here, os.fsencode(part), _FOLDER)
                    self._hand_over(below)
                os.close(here)
                here = below
            yield here
        finally:
            os.close(here)

    def _files_below(self, name: str) -> Iterator[str]:
        waiting = [""]
        while waiting:
            below = waiting.pop()
            place = f"{RESERVED_FOLDER}/{name}/{below}".rstrip("/")
            try:
                with self._root.opened(place) as folder:
                    listing = listing_of(folder)
            except OSError as error:
                if error.errno not in IN_THE_WAY:
                    raise
                continue
            for child, status in listing:
                path = f"{below}/{child}" if below else child
                if stat.S_ISDIR(status.st_mode):
                    waiting.append(path)
                else:
                    yield path


def _moved(source: str, folder: int | None, target_folder: int, *, to: str | None = None) -> str:
    """Move an entry to the first free one of the names; returns that. Without a folder the source is a whole path."""
    wanted = source if to is None else to
    for target in (wanted if number == 1 else f"{wanted}.{number}" for number in range(1, _MOST_NAMES)):
        with contextlib.suppress(FileExistsError):
            where = {} if folder is None else {"source_folder": folder}
            rename(source, target, Rename.NOREPLACE, target_folder=target_folder, **where)
            return target
    raise OSError(errno.EEXIST, "too many refused versions of one file", wanted)


def _write_all(file: int, content: bytes) -> None:
    written = 0
    while written < len(content):
        written += os.write(file, content[written:])


def content_at(folder: int, name: str) -> FolderContent | None:
    """What the entry is; None for what is neither a file nor a link, or cannot be read."""
    try:
        return _read_content(folder, name)
    except OSError:
        return None


def _read_content(folder: int, name: str) -> FolderContent | None:
    status = os.stat(name, dir_fd=folder, follow_symlinks=False)
    if stat.S_ISLNK(status.st_mode):
        target = os.readlink(os.fsencode(name), dir_fd=folder)
        return FolderContent(kind=Kind.SYMLINK, hash=ContentHash.of(target), size=len(target))
    if not stat.S_ISREG(status.st_mode):
        return None
    file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
    try:
        read = hash_of(file, expected=status.st_size)
    finally:
        os.close(file)
    executable = bool(status.st_mode & stat.S_IXUSR)
    return FolderContent(kind=Kind.FILE, hash=read.hash, size=read.size, executable=executable)


def left_in(work: Path, owner: Owner) -> list[str]:
    """Sentences about what of the agent's would go with the folder."""
    with FolderEditor(work, owner=owner) as editor:
        refused, late = editor.refused(), editor.late_writes()
    sentences = []
    if refused:
        shown = ", ".join(refused[:5]) + (" …" if len(refused) > 5 else "")
        count = "1 refused version is" if len(refused) == 1 else f"{len(refused)} refused versions are"
        sentences.append(f"{count} in .contextbase/refused/: {shown}.")
    sentences += [f"{place} was written to after a merge had replaced it." for place in late]
    return sentences
