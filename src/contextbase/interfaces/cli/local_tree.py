"""A folder on this machine as changes to a project are made from it: scanned and read without following any link."""

import hashlib
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from io import BufferedReader
from pathlib import Path
from typing import Literal

from contextbase.errors import InvalidInput, InvalidPath
from contextbase.ids import RESERVED_FOLDER, TreePath

__all__ = ["LocalEntry", "LocalTree"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalEntry:
    path: TreePath  # in the project
    name: str  # below the folder
    kind: Literal["file", "symlink", "directory"]  # a directory only if nothing is in it
    size: int = 0
    executable: bool = False


@dataclass(kw_only=True)
class LocalTree:
    """What is in a folder; `.contextbase/` at its top apart, all of it."""

    folder: Path
    entries: list[LocalEntry] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)  # by name: what cannot be part of a project, and why

    @classmethod
    def scan(cls, folder: Path, *, prefix: TreePath | None = None) -> "LocalTree":
        tree = cls(folder=folder)
        try:
            handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise InvalidInput(f"{folder} is not a folder that can be read: {error.strerror}.") from None
        try:
            tree._scan(handle, "", prefix)
        finally:
            os.close(handle)
        return tree

    def _scan(self, handle: int, below: str, prefix: TreePath | None) -> None:
        with os.scandir(handle) as listing:
            found = sorted(listing, key=lambda entry: entry.name)
        if not below:
            found = [entry for entry in found if entry.name.casefold() != RESERVED_FOLDER]
        if not found and below:
            self._add(below, prefix, "directory")
        for entry in found:
            name = f"{below}{entry.name}"
            status = os.stat(entry.name, dir_fd=handle, follow_symlinks=False)
            if stat.S_ISDIR(status.st_mode):
                if self._path(name, prefix) is None:
                    continue  # nor can anything in it be part of a project, however deep it goes
                try:
                    inner = os.open(entry.name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=handle)
                except OSError as error:
                    self.left_out[name] = f"it cannot be read: {error.strerror}"
                    continue
                try:
                    self._scan(inner, f"{name}/", prefix)
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
