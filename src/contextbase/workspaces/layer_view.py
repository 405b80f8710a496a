"""A stack of layers read as one tree, without a mount: what a workspace's changes are measured against."""

import os
import stat
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from contextbase.ids import ContentHash
from contextbase.storage.model import Kind
from contextbase.workspaces.folder import hash_of
from contextbase.workspaces.syscalls import is_whiteout

__all__ = ["LayerView", "ViewEntry"]

_MOST_REMEMBERED: Final = 50_000


@dataclass(frozen=True, kw_only=True, slots=True)
class ViewEntry:
    kind: Kind
    size: int
    executable: bool
    file: str  # the layer's own file: only read


class LayerView:
    """Layers do not change, so what was looked up is remembered, for all threads. `layers`: the topmost first."""

    def __init__(self, layers: Sequence[str]) -> None:
        self._folders: dict[str, tuple[str, ...]] = {"": tuple(layers)}
        self._entries: dict[str, ViewEntry | None] = {}
        self._hashes: dict[str, ContentHash] = {}

    def entry(self, path: str) -> ViewEntry | None:
        try:
            return self._entries[path]
        except KeyError:
            found = self._look_up(path)
        if len(self._entries) >= _MOST_REMEMBERED:
            self._entries.clear()
        self._entries[path] = found
        return found

    def hash_of(self, entry: ViewEntry) -> ContentHash:
        """Of a file's content, or of a link's target."""
        try:
            return self._hashes[entry.file]
        except KeyError:
            found = _hash_of(entry)
        if len(self._hashes) >= _MOST_REMEMBERED:
            self._hashes.clear()
        self._hashes[entry.file] = found
        return found

    def children(self, folder: str) -> Iterator[tuple[str, Kind]]:
        """A folder's entries, the first ones before the last are looked at; nothing if it is no folder."""
        decided: set[str] = set()
        for place in self._merged(folder):
            with os.scandir(place) as entries:
                for entry in entries:
                    if entry.name in decided:
                        continue
                    decided.add(entry.name)
                    kind = _kind_of(entry)
                    if kind is not None:
                        yield entry.name, kind

    def places_of(self, folder: str) -> tuple[str, ...]:
        """The folders of the layers that show it together, the topmost first; none if it is no folder."""
        return self._merged(folder)

    def modified_at(self, folder: str) -> int:
        return os.lstat(self._merged(folder)[0]).st_mtime_ns

    def has_child(self, folder: str, *, other_than: Collection[str] = ()) -> bool:
        return any(name not in other_than for name, _ in self.children(folder))

    def below(self, folder: str) -> Iterator[tuple[str, Kind]]:
        """Every path below a folder, a folder before what is in it."""
        waiting = [folder]
        while waiting:
            parent = waiting.pop()
            for name, kind in self.children(parent):
                path = f"{parent}/{name}" if parent else name
                yield path, kind
                if kind is Kind.DIRECTORY:
                    waiting.append(path)

    def _look_up(self, path: str) -> ViewEntry | None:
        parent, _, name = path.rpartition("/")
        top: ViewEntry | None = None
        folders = []
        for folder in self._merged(parent):
            file = f"{folder}/{name}"
            try:
                status = os.lstat(file)
            except FileNotFoundError:
                continue
            if is_whiteout(status):
                break
            if top is None:
                top = _entry(file, status)
            if not stat.S_ISDIR(status.st_mode):
                break
            folders.append(file)
        is_folder = top is not None and top.kind is Kind.DIRECTORY
        if len(self._folders) >= _MOST_REMEMBERED:
            self._folders = {"": self._folders[""]}
        self._folders[path] = tuple(folders) if is_folder else ()
        return top

    def _merged(self, folder: str) -> tuple[str, ...]:
        found = self._folders.get(folder)
        while found is None:
            self._look_up(folder)
            found = self._folders.get(folder)  # another thread may have made room meanwhile
        return found


def _entry(file: str, status: os.stat_result) -> ViewEntry:
    kinds = {stat.S_IFDIR: Kind.DIRECTORY, stat.S_IFLNK: Kind.SYMLINK}
    return ViewEntry(
        kind=kinds.get(stat.S_IFMT(status.st_mode), Kind.FILE),
        size=status.st_size,
        executable=bool(status.st_mode & stat.S_IXUSR),
        file=file,
    )


def _hash_of(entry: ViewEntry) -> ContentHash:
    if entry.kind is Kind.SYMLINK:
        return ContentHash.of(os.readlink(os.fsencode(entry.file)))  # noqa: PTH115 - a Path would respell it
    file = os.open(entry.file, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        return hash_of(file, expected=entry.size).hash
    finally:
        os.close(file)


def _kind_of(entry: os.DirEntry[str]) -> Kind | None:
    """None: a whiteout."""
    if entry.is_dir(follow_symlinks=False):
        return Kind.DIRECTORY
    if entry.is_symlink():
        return Kind.SYMLINK
    return Kind.FILE if entry.is_file(follow_symlinks=False) else None
