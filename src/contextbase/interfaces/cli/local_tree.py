"""A folder on this machine as changes to a project are made from it: scanned and read without following any link."""

import hashlib
import os
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from io import BufferedReader
from pathlib import Path
from typing import Literal

from contextbase.errors import InvalidInput, InvalidPath
from contextbase.ids import RESERVED_FOLDER, TreePath
from contextbase.workspaces.ignore_rules import LARGEST_IGNORE_FILE, ExcludePatterns, IgnoreRule, IgnoreScope

__all__ = ["FileChoice", "LocalEntry", "LocalTree"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalEntry:
    path: TreePath  # in the project
    name: str  # below the folder
    kind: Literal["file", "symlink", "directory"]  # a directory only if nothing is in it
    size: int = 0
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class FileChoice:
    """Which of a folder's files are wanted."""

    reads_gitignore: bool = True
    excludes: ExcludePatterns = field(default_factory=lambda: ExcludePatterns(()))
    tracked: Collection[str] = frozenset()  # what the project has, with the folders above: never ignored


@dataclass(kw_only=True)
class LocalTree:
    """What is in a folder, but for `.contextbase/` at its top, what is excluded, and what is new and ignored."""

    folder: Path
    choice: FileChoice
    entries: list[LocalEntry] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # by name: what cannot be part of a project, and why
    ignored: dict[str, IgnoreRule] = field(default_factory=dict)  # by name; a folder ends in '/'
    excluded: list[str] = field(default_factory=list)  # names; a folder ends in '/'
    notes: list[str] = field(default_factory=list)

    @classmethod
    def scan(cls, folder: Path, *, prefix: TreePath | None = None, choice: FileChoice | None = None) -> "LocalTree":
        tree = cls(folder=folder, choice=choice or FileChoice())
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise InvalidInput(f"The folder {folder} cannot be read: {error.strerror}.") from None
        try:
            tree._scan(handle, "", prefix, IgnoreScope.top(reads_git=tree.choice.reads_gitignore))
        finally:
            os.close(handle)
        return tree

    def _scan(self, handle: int, below: str, prefix: TreePath | None, scope: IgnoreScope) -> None:
        with os.scandir(handle) as listing:
            found = sorted(listing, key=lambda entry: entry.name)
        if not below:
            found = [entry for entry in found if entry.name.casefold() != RESERVED_FOLDER]
        if not found and below:
            self._add(below, prefix, "directory")
        scope = scope.entered(below.rstrip("/"), partial(_ignore_file, handle), self.notes)
        for entry in found:
            name = f"{below}{entry.name}"
            status = os.stat(entry.name, dir_fd=handle, follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            if self.choice.excludes.excludes(name, is_folder=is_folder):
                self.excluded.append(f"{name}/" if is_folder else name)
                continue
            rule = scope.ignored_by(name, is_folder=is_folder)
            if rule is not None and (f"{prefix}/{name}" if prefix else name) not in self.choice.tracked:
                self.ignored[f"{name}/" if is_folder else name] = rule
                continue
            if is_folder:
                if self._path(name, prefix) is None:
                    continue  # nor can anything in it be part of a project, however deep it goes
                try:
                    inner = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                except OSError as error:
                    self.left_out[name] = f"it cannot be read: {error.strerror}"
                    continue
                try:
                    self._scan(inner, f"{name}/", prefix, scope.below(rule))
                finally:
                    os.close(inner)
            elif stat.S_ISLNK(status.st_mode):
                self._add(name, prefix, "symlink", size=status.st_size)
            elif stat.S_ISREG(status.st_mode):
                self._add(name, prefix, "file", size=status.st_size, executable=bool(status.st_mode & 0o100))
            else:
                self.left_out[name] = "it is neither a file, a folder nor a link"

    def _add(
        self,
        name: str,
        prefix: TreePath | None,
        kind: Literal["file", "symlink", "directory"],
        *,
        size: int = 0,
        executable: bool = False,
    ) -> None:
        place = name.rstrip("/")
        path = self._path(place, prefix)
        if path is not None:
            self.entries.append(LocalEntry(path=path, name=place, kind=kind, size=size, executable=executable))

    def _path(self, name: str, prefix: TreePath | None) -> TreePath | None:
        """Where it would be in the project; None if it is left out."""
        try:
            return TreePath(f"{prefix}/{name}" if prefix else name)
        except InvalidPath as error:
            self.left_out[name] = error.message
            return None

    @contextmanager
    def opened(self, entry: LocalEntry) -> Iterator[BufferedReader]:
        """A file of it, for reading; raises `InvalidInput`."""
        with self._folder_of(entry) as handle:
            try:
                file = os.open(entry.name.rpartition("/")[2], os.O_RDONLY | os.O_NOFOLLOW, dir_fd=handle)
            except OSError as error:
                raise InvalidInput(f"{self.folder / entry.name} cannot be read: {error.strerror}.") from None
        with os.fdopen(file, "rb") as opened:
            yield opened

    def link(self, entry: LocalEntry) -> bytes:
        """Where a link of it leads, as it is written."""
        with self._folder_of(entry) as handle:
            return os.fsencode(os.readlink(entry.name.rpartition("/")[2], dir_fd=handle))

    def hash(self, entry: LocalEntry) -> str:
        if entry.kind == "symlink":
            return hashlib.sha256(self.link(entry)).hexdigest()
        with self.opened(entry) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()

    @contextmanager
    def _folder_of(self, entry: LocalEntry) -> Iterator[int]:
        """A handle of the folder it is in: gone to step by step, so that no link is followed on the way."""
        handle = os.open(self.folder, os.O_RDONLY | os.O_DIRECTORY)
        try:
            for part in entry.name.split("/")[:-1]:
                try:
                    inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                except OSError as error:
                    raise InvalidInput(f"{self.folder / entry.name} cannot be read: {error.strerror}.") from None
                os.close(handle)
                handle = inner
            yield handle
        finally:
            os.close(handle)


def _ignore_file(folder: int, name: str) -> bytes | None:
    """An ignore file below an open folder; no link is followed."""
    handle = os.dup(folder)
    try:
        *above, own = name.split("/")
        for part in above:
            inner = os.open(part, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
            os.close(handle)
            handle = inner
        file = os.open(own, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=handle)
    except OSError:  # there is none, or a link has its name
        return None
    finally:
        os.close(handle)
    with os.fdopen(file, "rb") as opened:
        is_plain = stat.S_ISREG(os.fstat(file).st_mode)
        return opened.read(LARGEST_IGNORE_FILE + 1) if is_plain else None
