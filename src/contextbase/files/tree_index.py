"""The basic index of projects, kept in memory: one reading of a tree answers all navigation in it.

A newer snapshot is made from an older one that is known, at the cost of what changed between them.
"""

import asyncio
from collections import OrderedDict
from collections.abc import Hashable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID
from weakref import WeakValueDictionary

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.files.file_tree import EMPTY, Change, FileLeaf, FolderNode, Mark, built, changed, filtered
from contextbase.gate.service import OpenedProject
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.model import SnapshotKey, View

__all__ = ["TreeIndex"]

MOST_ENTRIES: Final = 1_000_000
"""That are kept in all: about 250 MB. The trees of a family share most of theirs, and count once."""

_SQL: Final = load_queries("contextbase.files")
_PAGE: Final = 5000
_MOST_SNAPSHOTS: Final = 32  # of one family
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_KINDS: Final = {kind.value: kind for kind in Kind}  # quicker than to call it, for thousands of rows

_Family = tuple[ProjectId, UUID, Hashable]
"""The trees of a project, in an epoch, as seen by some: each is made from one before."""


class TreeIndex:
    def __init__(self, database: Database) -> None:
        self._database = database
        self._families: OrderedDict[_Family, OrderedDict[Seq, FolderNode]] = OrderedDict()
        self._turns: WeakValueDictionary[_Family, asyncio.Lock] = WeakValueDictionary()

    async def shown(self, project_id: ProjectId, opened: OpenedProject, seq: Seq) -> FolderNode:
        """A snapshot, as whoever opened the project may see it: where everything stood, and where it is now."""
        authority, snapshot = opened.authority, SnapshotKey(project_id=project_id, epoch=opened.epoch, seq=seq)
        if authority.sees_everything:
            return await self._whole(snapshot)
        if seq == opened.seq:
            family = (project_id, opened.epoch, (opened.policy.version, authority.sight))
            return await self._tree(family, seq, authority)
        async with self._database.connection() as connection:
            rows = await connection.fetch(_SQL.moved_since, project_id, seq)
        moved = {row["path"]: TreePath.stored(row["path_now"]) for row in rows}
        return await in_thread(_seen, await self._whole(snapshot), authority, moved)

    async def given(self, view: View) -> FolderNode:
        """What a workspace was given."""
        whole: FolderNode = await self._whole(view.snapshot)
        for part in () if view.folder is None else view.folder.parts:
            whole = whole.folders.get(part, EMPTY)
        return changed(whole, dict.fromkeys(view.masked, Mark.GONE)) if view.masked else whole

    async def _whole(self, snapshot: SnapshotKey) -> FolderNode:
        """For ourselves: nobody may see it unfiltered, but who sees everything."""
        return await self._tree((snapshot.project_id, snapshot.epoch, None), snapshot.seq, None)

    async def _tree(self, family: _Family, seq: Seq, authority: PathAuthority | None) -> FolderNode:
        async with self._turns.setdefault(family, asyncio.Lock()):
            known: Mapping[Seq, FolderNode] = self._families.get(family, {})
            if (found := known.get(seq)) is None:
                older = max((one for one in known if one < seq), default=None)
                if older is None:
                    found = await self._read(family, seq, authority)
                else:
                    found = await self._advanced(family, known[older], older, seq, authority)
            self._keep(family, seq, found)
            return found

    async def _read(self, family: _Family, seq: Seq, authority: PathAuthority | None) -> FolderNode:
        project_id, epoch, _ = family
        if authority is None:
            async with self._database.connection() as connection:
                return await _loaded(connection, project_id, seq)
        whole = await self._whole(SnapshotKey(project_id=project_id, epoch=epoch, seq=seq))
        return await in_thread(_seen, whole, authority, {})

    async def _advanced(
        self, family: _Family, tree: FolderNode, older: Seq, seq: Seq, authority: PathAuthority | None
    ) -> FolderNode:
        """Both are heads for a restricted caller, so what is where it was needs no second look."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(_SQL.tree_changes, family[0], older, seq)
        changes: dict[str, Change] = {row["path"]: Mark.LEFT for row in rows}
        for path, leaf in _leaves([row for row in rows if row["kind"] is not None]):
            if authority is None or authority.sees(TreePath.stored(path)):
                changes[path] = leaf or Mark.STANDS
        return changed(tree, changes)

    def _keep(self, family: _Family, seq: Seq, tree: FolderNode) -> None:
        snapshots = self._families.setdefault(family, OrderedDict())
        snapshots[seq] = tree
        snapshots.move_to_end(seq)
        self._families.move_to_end(family)
        while len(snapshots) > _MOST_SNAPSHOTS:
            snapshots.popitem(last=False)
        while len(self._families) > 1 and sum(map(_weight, self._families.values())) > MOST_ENTRIES:
            self._families.popitem(last=False)


async def _loaded(connection: Connection, project_id: ProjectId, seq: Seq) -> FolderNode:
    found: list[tuple[str, FileLeaf | None]] = []
    after = ""
    while True:
        rows = await connection.fetch(_SQL.tree_page, project_id, seq, after, _PAGE)
        found += _leaves(rows)
        if len(rows) < _PAGE:
            return await in_thread(built, found)
        after = rows[-1]["path"]


def _leaves(rows: list[asyncpg.Record]) -> Iterator[tuple[str, FileLeaf | None]]:
    """Without a leaf: a folder that stands by itself."""
    times: dict[datetime, int] = {}
    for path, kind, size, executable, mime, at in rows:
        if kind == Kind.DIRECTORY:
            yield path, None
            continue
        if (modified_ns := times.get(at)) is None:
            modified_ns = times[at] = (at - _EPOCH) // timedelta(microseconds=1) * 1000
        yield path, FileLeaf(_KINDS[kind], size, modified_ns, mime, executable)


def _seen(tree: FolderNode, authority: PathAuthority, moved: Mapping[str, TreePath]) -> FolderNode:
    """`moved`: where nodes are now that are no longer where the tree has them."""

    def shows(path: str) -> bool:
        place = TreePath.stored(path)
        return authority.shows(place, moved.get(path, place))

    return filtered(tree, shows, lambda folder: authority.shows_nothing_in(TreePath.stored(folder)))


def _weight(snapshots: Mapping[Seq, FolderNode]) -> int:
    return max(tree.sums.files + tree.sums.folders + 1 for tree in snapshots.values())
