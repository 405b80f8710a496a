"""The part of a project's head that a batch touches, and what the batch has made of it so far."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace

from contextbase.gate.policy import ProjectPolicy
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TreePath
from contextbase.merge import Entry, EntryKind
from contextbase.storage.model import Kind

__all__ = ["Live", "RequestView", "WorkingTree"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Live:
    """A node's state at the head, or as this batch will leave it."""

    node_id: NodeId
    number: int
    seq: Seq
    path: TreePath
    kind: Kind
    content_hash: ContentHash | None
    size: int
    executable: bool
    mime: str
    author: PrincipalId | None = None  # known for what this batch wrote

    @property
    def entry(self) -> Entry:
        return Entry(kind=EntryKind(self.kind), content=self.content_hash, executable=self.executable)


class WorkingTree:
    """Starts as what was loaded; every settled change moves it on, so that the next request of the batch meets it."""

    def __init__(self, *, seq: Seq, heads: Iterable[Live], below: dict[TreePath, tuple[TreePath, ...]]) -> None:
        self.seq = seq  # the committed head this was loaded at
        self._loaded = {live.path: live for live in heads}
        self._now: dict[TreePath, Live] = dict(self._loaded)
        self._by_node = {live.node_id: live for live in self._loaded.values()}
        self._below = below

    def loaded(self, path: TreePath) -> Live | None:
        """What stood there when the batch began."""
        return self._loaded.get(path)

    def at(self, path: TreePath) -> Live | None:
        return self._now.get(path)

    def node(self, node_id: NodeId) -> Live | None:
        """The node as it is now; of kind deleted if it is gone, None if it was never loaded."""
        return self._by_node.get(node_id)

    def nodes(self) -> list[Live]:
        """Every node that is known, deleted ones too."""
        return list(self._by_node.values())

    def learn(self, live: Live) -> None:
        """A node that was found elsewhere than at a path of the batch: renamed or deleted since."""
        if live.node_id not in self._by_node:
            self._by_node[live.node_id] = live
            if live.kind is not Kind.DELETED:
                self._loaded.setdefault(live.path, live)
                self._now.setdefault(live.path, live)

    def name_author(self, node_id: NodeId, author: PrincipalId) -> None:
        live = self._by_node[node_id] = replace(self._by_node[node_id], author=author)
        if live.kind is not Kind.DELETED:
            self._now[live.path] = self._loaded[live.path] = live

    def put(self, live: Live) -> None:
        """The node's new state; it leaves the path it had."""
        before = self._by_node.get(live.node_id)
        if before is not None and self._now.get(before.path) is before:
            del self._now[before.path]
        self._by_node[live.node_id] = live
        if live.kind is not Kind.DELETED:
            self._now[live.path] = live

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        seen = set(self._below.get(folder, ()))
        yield from (path for path in seen if path not in self._loaded or path in self._now)
        yield from (path for path in self._now if path not in seen and path.is_below(folder))

    def saved(self) -> "WorkingTree":
        """A copy to go back to."""
        copy = WorkingTree(seq=self.seq, heads=(), below=self._below)
        copy._loaded, copy._now, copy._by_node = dict(self._loaded), dict(self._now), dict(self._by_node)
        return copy


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestView:
    """The working tree as one writer meets it: the `Head` that `settle` asks."""

    tree: WorkingTree
    bases: Mapping[TreePath, Live]  # what the writer saw at each path it names
    authority: PathAuthority
    policy: ProjectPolicy

    def entry(self, path: TreePath) -> Entry | None:
        live = self.tree.at(path)
        return None if live is None else live.entry

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        return self.tree.below(folder)

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
