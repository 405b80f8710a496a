"""A project's snapshots in memory, as a mirror asks for them."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final
from uuid import UUID

from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.model import MirrorEntry, SnapshotKey

__all__ = ["FOLDER", "Link", "MemorySnapshots", "Node", "Script", "Tree", "commit_time"]

_PROJECT: Final = ProjectId(UUID(int=1))
_EPOCH: Final = UUID(int=2)
_FIRST_COMMIT: Final = 1_700_000_000_000_000_000


@dataclass(frozen=True)
class Link:
    target: str


@dataclass(frozen=True)
class Script:
    """A file that may be run."""

    content: bytes


class _Folder:
    def __repr__(self) -> str:
        return "FOLDER"


FOLDER: Final = _Folder()
Node = bytes | Link | Script | _Folder
Tree = dict[str, Node]


def commit_time(seq: int) -> int:
    return _FIRST_COMMIT + seq * 60_000_000_000


@dataclass
class MemorySnapshots:
    project_id: ProjectId = _PROJECT
    epoch: UUID = _EPOCH
    folder: str = ""  # where everything is in the project, ended by '/'; tests name paths from there
    beside: Tree = field(default_factory=dict)  # what else each snapshot but the first has, by its path in the project
    trees: list[Tree] = field(default_factory=lambda: [{}])
    blobs: dict[ContentHash, bytes | Path] = field(default_factory=dict)
    asked: list[tuple[int, int]] = field(default_factory=list)  # the differences that were read

    @property
    def head(self) -> SnapshotKey:
        return self.key(len(self.trees) - 1)

    def key(self, seq: int) -> SnapshotKey:
        return SnapshotKey(project_id=self.project_id, epoch=self.epoch, seq=Seq(seq))

    def commit(self, changes: Mapping[str, Node | None]) -> SnapshotKey:
        """None deletes."""
        tree = {**self.trees[-1], **{path: node for path, node in changes.items() if node is not None}}
        for path, node in changes.items():
            if node is None:
                del tree[path]
        self.trees.append(tree)
        return self.head

    async def changes(
        self, older: SnapshotKey, newer: Seq, *, below: TreePath | None = None
    ) -> AsyncIterator[MirrorEntry]:
        self.asked.append((older.seq, newer))
        before, after = self._in_project(older.seq), self._in_project(newer)
        for path in self._changed(older.seq, newer, below):
            yield self._entry(path, after.get(path), newer, existed=path in before)

    async def count_changes(self, older: SnapshotKey, newer: Seq, *, below: TreePath | None = None, most: int) -> int:
        return min(most, len(self._changed(older.seq, newer, below)))

    async def standing(self, snapshot: SnapshotKey, folders: Collection[TreePath]) -> frozenset[TreePath]:
        tree = self._in_project(snapshot.seq)
        found = {path for path, node in tree.items() if node is FOLDER}
        for path in tree:
            found.update(path[:at] for at, character in enumerate(path) if character == "/")
        return frozenset(folder for folder in folders if folder in found)

    @asynccontextmanager
    async def contents(
        self, snapshot: SnapshotKey, hashes: Collection[ContentHash]
    ) -> AsyncIterator[Mapping[ContentHash, bytes | Path]]:
        assert snapshot.project_id == self.project_id
        yield {content_hash: self.blobs[content_hash] for content_hash in hashes}

    def _changed(self, older: Seq, newer: Seq, below: TreePath | None) -> list[str]:
        """In no useful order."""
        before, after = self._in_project(older), self._in_project(newer)
        paths = [path for path in before.keys() | after.keys() if before.get(path) != after.get(path)]
        inside = [path for path in paths if below is None or f"{path}/".startswith(f"{below}/")]
        return sorted(inside, key=lambda path: path[::-1])

    def _in_project(self, seq: Seq) -> Tree:
        beside = self.beside if seq else {}
        return beside | {f"{self.folder}{path}": node for path, node in self.trees[seq].items()}

    def _entry(self, path: str, node: Node | None, seq: Seq, *, existed: bool) -> MirrorEntry:
        kind, content = Kind.DELETED, None
        if node is FOLDER:
            kind = Kind.DIRECTORY
        elif isinstance(node, Link):
            kind, content = Kind.SYMLINK, node.target.encode()
        elif isinstance(node, Script):
            kind, content = Kind.FILE, node.content
        elif isinstance(node, bytes):
            kind, content = Kind.FILE, node
        content_hash = None
        if content is not None:
            content_hash = ContentHash.of(content)
            self.blobs.setdefault(content_hash, content)
        return MirrorEntry(
            path=TreePath(path),
            kind=kind,
            content_hash=content_hash,
            size=len(content or b""),
            executable=isinstance(node, Script),
            changed_at=commit_time(seq),
            existed=existed,
        )
