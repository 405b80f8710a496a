"""The part of a project's head that is known in memory, with what is about to become of it."""

from collections.abc import Iterable, Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from typing import Final

from contextbase.gate.policy import ProjectPolicy
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import NodeId, PrincipalId, Seq, TreePath
from contextbase.merge import EntryKind, TreeEntry
from contextbase.storage.model import Kind, NodeState

__all__ = ["Live", "RequestView", "WorkingTree"]

_MOST_PAST: Final = 128


@dataclass(frozen=True, kw_only=True, slots=True)
class Live(NodeState):
    """A node's state at the head, or as this batch will leave it."""

    author: PrincipalId | None = None  # known for what this batch wrote

    @property
    def entry(self) -> TreeEntry:
        return TreeEntry(kind=EntryKind(self.kind), content=self.content_hash, executable=self.executable)


class WorkingTree:
    """What is known of a head: as it was loaded, moved on by every settled change, so that the next one meets it."""

    def __init__(self) -> None:
        self._at: dict[TreePath, Live | None] = {}  # None: there is nothing
        self._inside: dict[TreePath, set[TreePath]] = {}  # the entries in `_at`, by every folder above them
        self._past: dict[TreePath, list[tuple[Seq, Live | None]]] = {}  # since when what was there, newest last
        self._by_node: dict[NodeId, Live] = {}
        self._listed: dict[TreePath, tuple[TreePath, ...]] = {}
        self._undo: list[tuple[TreePath | NodeId, Live | None]] | None = None
        self.older: dict[tuple[TreePath, Seq], Live] = {}  # bases that were loaded: the past does not change
        self.left = 0  # how many entries left their path since the tree was begun

    def __len__(self) -> int:
        return len(self._at) + len(self.older)

    def knows(self, path: TreePath) -> bool:
        return path in self._at

    def at(self, path: TreePath) -> Live | None:
        return self._at.get(path)

    def is_folder(self, path: TreePath) -> bool:
        """Whether a folder stands there that is an entry of its own."""
        live = self._at.get(path)
        return live is not None and live.kind is Kind.DIRECTORY

    def knows_at(self, path: TreePath, seq: Seq) -> bool:
        """Whether `then` can tell."""
        past = self._past.get(path)
        return past is not None and past[0][0] <= seq

    def then(self, path: TreePath, seq: Seq) -> Live | None:
        """What stood there in a snapshot of which `knows_at` is true."""
        return next(live for since, live in reversed(self._past[path]) if since <= seq)

    def node(self, node_id: NodeId) -> Live | None:
        """The node as it is now; of kind deleted if it is gone, None if it was never loaded."""
        return self._by_node.get(node_id)

    def learn(self, live: Live) -> None:
        """An entry that was loaded; what is known already is newer."""
        if live.node_id in self._by_node:
            return
        self._by_node[live.node_id] = live
        if live.kind is not Kind.DELETED and live.path not in self._at:
            self._set(live.path, live, live.seq)

    def learn_absent(self, paths: Iterable[TreePath]) -> None:
        """Nothing was found at these."""
        for path in paths:
            self._at.setdefault(path, None)

    def learn_inside(self, folder: TreePath, paths: Iterable[TreePath]) -> None:
        """The first entries of a folder, more of them than have left their path since."""
        self._listed[folder] = tuple(paths)

    def name_author(self, node_id: NodeId, author: PrincipalId) -> None:
        before = self._by_node[node_id]
        live = self._by_node[node_id] = replace(before, author=author)
        if self._at.get(before.path) is before:
            self._at[before.path] = live

    def put(self, live: Live) -> None:
        """The node's new state; it leaves the path it had."""
        before = self._by_node.get(live.node_id)
        if self._undo is not None:
            self._undo.append((live.node_id, before))
        self._by_node[live.node_id] = live
        if before is not None and before.path != live.path and self._at.get(before.path) is before:
            self._vacate(before.path, live.seq)
        if live.kind is not Kind.DELETED:
            self._set(live.path, live, live.seq)
        elif self._at.get(live.path) is before:
            self._vacate(live.path, live.seq)

    def follow(self, versions: Iterable[Live]) -> None:
        """All that others made of the head since, in order."""
        self._listed.clear()  # who left a folder may never have been known
        for live in versions:
            self.put(live)

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        yield from self._inside.get(folder, ())
        yield from (path for path in self._listed.get(folder, ()) if path not in self._at)

    def remember(self) -> None:
        """Begin to note what changes, for `undo`."""
        self._undo = []

    def keep(self) -> None:
        """What changed since `remember` stays."""
        self._undo = None

    def undo(self) -> None:
        """Back to what it was when `remember` was said."""
        changes, self._undo = self._undo or [], None
        for key, before in reversed(changes):
            if isinstance(key, TreePath):
                past = self._past[key]
                past.pop()
                if not past:
                    del self._past[key]
                self._index(key, before)
            elif before is None:
                del self._by_node[key]
            else:
                self._by_node[key] = before

    def _vacate(self, path: TreePath, seq: Seq) -> None:
        self.left += 1
        self._set(path, None, seq)

    def _set(self, path: TreePath, live: Live | None, seq: Seq) -> None:
        if self._undo is not None:
            self._undo.append((path, self._at.get(path)))
        past = self._past.setdefault(path, [])
        past.append((seq, live))
        if len(past) > _MOST_PAST:
            del past[: _MOST_PAST // 2]
        self._index(path, live)

    def _index(self, path: TreePath, live: Live | None) -> None:
        before = self._at.get(path)
        self._at[path] = live
        if (before is None) == (live is None):
            return
        folder = path.parent
        while folder is not None:
            inside = self._inside.setdefault(folder, set())
            if live is None:
                inside.discard(path)
            else:
                inside.add(path)
            folder = folder.parent


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestView:
    """The working tree as one writer meets it: the `Head` that `settle` asks."""

    tree: WorkingTree
    bases: Mapping[TreePath, Live]  # what the writer saw at each path it names
    leaving: AbstractSet[TreePath]  # where what it deletes stands, and the folders that it makes
    authority: PathAuthority
    policy: ProjectPolicy

    def entry(self, path: TreePath) -> TreeEntry | None:
        live = self.tree.at(path)
        return None if live is None else live.entry

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        """In a folder that it deletes or makes, what the writer cannot see does not count: that stays, and a folder for
        it."""
        inside = self.tree.below(folder)
        return filter(self.authority.sees, inside) if folder in self.leaving else inside

    def renamed_to(self, path: TreePath) -> TreePath | None:
        """Only to places where the writer may write: to others the file is simply gone."""
        base = self.bases.get(path)
        now = None if base is None else self.tree.node(base.node_id)
        if now is None or now.kind is Kind.DELETED or now.path == path:
            return None
        return now.path if self.authority.level(now.path) >= Level.READ_WRITE_KEEP else None

    def rank(self, path: TreePath) -> int:
        live = self.tree.at(path)
        return self.policy.rank(live.author if live else None)
