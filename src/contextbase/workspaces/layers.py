"""One layer of a mirror: what changed between two snapshots, as a folder that an overlay can be mounted on."""

import contextlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, Final

from contextbase.durable import flush
from contextbase.errors import BlobMissing
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.layer_view import LayerView
from contextbase.workspaces.model import MirrorEntry, Owner
from contextbase.workspaces.ports import LocalContent
from contextbase.workspaces.syscalls import copy_content, make_whiteout, sync_filesystem

__all__ = ["Layer", "LayerWriter", "marker_of", "read_layers"]

_MARKER: Final = "complete.json"
_TREE: Final = "tree"
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FOLDER_MODE: Final = 0o755  # agents run as the owner; others on the machine may look where the folders above let them
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


@dataclass(frozen=True, kw_only=True, slots=True)
class Layer:
    """`<folder>/<older>-<newer>/`: `tree/` holds the files, and the marker says that all of them are on the disk."""

    folder: Path
    older: Seq  # 0: it holds a whole snapshot
    newer: Seq
    entries: int  # written, whiteouts too
    bytes: int
    total: int  # nodes of the newer snapshot

    @property
    def tree(self) -> Path:
        return self.folder / _TREE

    @property
    def marker(self) -> Path:
        return self.folder / _MARKER


def marker_of(tree: str) -> str:
    return f"{tree.removesuffix(_TREE)}{_MARKER}"


def read_layers(folder: Path) -> list[Layer]:
    """The layers that count. What has no marker is being built, or was never finished."""
    layers = []
    for place in folder.iterdir():
        with contextlib.suppress(FileNotFoundError):
            written = json.loads((place / _MARKER).read_text(encoding="utf-8"))
            layers.append(Layer(folder=place, **written))
    return layers


class LayerWriter:
    """Fills a new layer; every method blocks. It does not count before `finish` has returned."""

    def __init__(self, folder: Path, *, owner: Owner) -> None:
        folder.mkdir(mode=0o700)
        self._folder = folder
        self._owner = None if owner == Owner.of_this_process() else owner
        self._folder_times: dict[str, int] = {}
        self._written: set[str] = set()  # what is neither a folder nor deleted
        self._bytes = 0
        self._made = 0
        (folder / _TREE).mkdir()
        self._tree = os.open(folder / _TREE, _FOLDER)
        os.fchmod(self._tree, _FOLDER_MODE)
        self._folder_times[""] = 0
        self._own("")

    def close(self) -> None:
        os.close(self._tree)

    def write(self, entries: Iterable[MirrorEntry], contents: Mapping[ContentHash, LocalContent]) -> None:
        for entry in entries:
            self._make_folders(entry.path if entry.kind is Kind.DIRECTORY else entry.path.parent, entry.changed_at)
            if entry.kind is not Kind.DIRECTORY:
                self._write_entry(entry, contents)
            self._made += 1

    def white_out(self, paths: Iterable[TreePath], *, changed_at: int, below: LayerView | None = None) -> None:
        """Hide what lies below; folders on the way take their times from `below`, where it is given."""
        if below is not None:
            self._folder_times[""] = below.modified_at("")
        for path in paths:
            if self._stands(path):
                continue  # a file of this layer hides what was there
            self._make_folders(path.parent, changed_at, like=below)
            make_whiteout(os.fsencode(path), folder=self._tree)
            self._made += 1

    def show(self, folder: TreePath, *, below: LayerView) -> None:
        """Have the folder, so that it can be a view's top whether it lies below or not."""
        self._make_folders(folder, 0, like=below if below.places_of(folder) else None)

    def finish(self, *, older: Seq, newer: Seq, total: int) -> Layer:
        """Durable when it returns."""
        for path, time in sorted(self._folder_times.items(), reverse=True):
            os.utime(path or ".", ns=(time, time), dir_fd=self._tree, follow_symlinks=False)
        figures = {"older": older, "newer": newer, "entries": self._made, "bytes": self._bytes, "total": total}
        draft = self._folder / (_MARKER + ".draft")
        draft.write_text(json.dumps(figures), encoding="utf-8")
        sync_filesystem(self._tree)
        draft.rename(self._folder / _MARKER)
        for folder in (self._folder, self._folder.parent):
            descriptor = os.open(folder, _FOLDER)
            try:
                flush(descriptor)
            finally:
                os.close(descriptor)
        return Layer(folder=self._folder, older=older, newer=newer, entries=self._made, bytes=self._bytes, total=total)

    def _write_entry(self, entry: MirrorEntry, contents: Mapping[ContentHash, LocalContent]) -> None:
        content = contents.get(entry.content_hash) if entry.content_hash is not None else None
        if content is None:
            raise BlobMissing(f"The content of {entry.path} ({entry.content_hash}) cannot be had.")
        if entry.kind is Kind.SYMLINK:
            target = content if isinstance(content, bytes) else content.read_bytes()
            os.symlink(target, os.fsencode(entry.path), dir_fd=self._tree)
        else:
            mode = 0o755 if entry.executable else 0o644
            with open(os.open(entry.path, _NEW_FILE, mode, dir_fd=self._tree), "wb") as file:  # noqa: PTH123 - dir_fd
                _fill(file, content)
                os.fchmod(file.fileno(), mode)
            self._bytes += entry.size
        self._own(entry.path)
        os.utime(entry.path, ns=(entry.changed_at, entry.changed_at), dir_fd=self._tree, follow_symlinks=False)
        self._written.add(entry.path)

    def _make_folders(self, path: TreePath | None, changed_at: int, *, like: LayerView | None = None) -> None:
        """Make what is missing of it; a folder's time is that of the newest change below it in this layer."""
        folder: str = path or ""
        missing = []
        while folder and folder not in self._folder_times:
            missing.append(folder)
            folder = folder.rpartition("/")[0]
        for new in reversed(missing):
            os.mkdir(new, _FOLDER_MODE, dir_fd=self._tree)
            os.chmod(new, _FOLDER_MODE, dir_fd=self._tree)  # the umask may have taken bits
            self._own(new)
            self._folder_times[new] = like.modified_at(new) if like else changed_at
        folder = path or ""
        while like is None and self._folder_times[folder] < changed_at:
            self._folder_times[folder] = changed_at
            folder = folder.rpartition("/")[0]

    def _stands(self, path: str) -> bool:
        """Whether this layer has something at the path, or a file or link above it."""
        if path in self._folder_times:
            return True
        while path and path not in self._written:
            path = path.rpartition("/")[0]
        return bool(path)

    def _own(self, path: str) -> None:
        if self._owner is not None:
            os.chown(path or ".", self._owner.uid, self._owner.gid, dir_fd=self._tree, follow_symlinks=False)


def _fill(file: BinaryIO, content: LocalContent) -> None:
    """With an inode of its own in any case: shared blocks at most, never a hard link to a blob."""
    if isinstance(content, bytes):
        file.write(content)
        return
    with content.open("rb") as source:
        copy_content(source.fileno(), file.fileno())
