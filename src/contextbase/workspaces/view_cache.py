"""What an agent is shown: a snapshot without what is hidden from it."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from contextbase.db.database import Connection
from contextbase.errors import NotFound
from contextbase.gate.service import OpenedProject
from contextbase.identity.levels import Level, PathAuthority
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.threads import in_thread
from contextbase.workspaces.masks import masked_paths
from contextbase.workspaces.model import SnapshotKey, View
from contextbase.workspaces.repository import WorkspaceRepository

__all__ = ["ViewCache"]

_MOST_KNOWN: Final = 1000


class ViewCache:
    """Finding what is hidden costs a look at the whole snapshot, so it is remembered for all who see the same."""

    def __init__(self, registry: WorkspaceRepository) -> None:
        self._registry = registry
        self._known: OrderedDict[Hashable, frozenset[TreePath]] = OrderedDict()
        self._standing: OrderedDict[tuple[SnapshotKey, TreePath], bool] = OrderedDict()  # whether it is a folder

    async def of_head(self, connection: Connection, project_id: ProjectId, opened: OpenedProject) -> View:
        """The head, as its opener may see it."""
        return await self.at(connection, project_id, opened, opened.seq)

    async def of_snapshot(self, connection: Connection, project_id: ProjectId, opened: OpenedProject, seq: Seq) -> View:
        """An earlier snapshot, as its opener may see it now: files whose nodes have moved to a hidden path since are
        hidden, too."""
        snapshot = SnapshotKey(project_id=project_id, epoch=opened.epoch, seq=seq)
        if opened.authority.sees_everything or seq == opened.seq:
            return await self.at(connection, project_id, opened, seq)
        key = (snapshot, opened.seq, opened.authority.sight)
        if key not in self._known:
            places = await self._registry.places_of(connection, project_id, seq)
            shown = {then for then, now in places if opened.authority.shows(then, now)}
            paths = [then for then, _ in places]
            self._remember(key, await in_thread(masked_paths, paths, shown.__contains__))
        return View(snapshot=snapshot, masked=self._known[key])

    async def at(self, connection: Connection, project_id: ProjectId, opened: OpenedProject, seq: Seq) -> View:
        """A snapshot by what its opener may see of its paths alone, wherever the files are now."""
        snapshot = SnapshotKey(project_id=project_id, epoch=opened.epoch, seq=seq)
        return View(snapshot=snapshot, masked=await self._masked(connection, snapshot, opened.authority))

    async def of_folder(self, connection: Connection, view: View, authority: PathAuthority, folder: TreePath) -> View:
        """What a view shows of a folder. `NotFound` if that is hidden, or is not there and may not be made: the same
        for both."""
        key = (view.snapshot, folder)
        if key not in self._standing:
            snapshot = view.snapshot
            self._standing[key] = await self._registry.is_folder(connection, snapshot.project_id, snapshot.seq, folder)
            while len(self._standing) > _MOST_KNOWN:
                self._standing.popitem(last=False)
        found = self._shown_folder(view, authority, folder)
        if found is None:
            raise NotFound(f"There is no folder {folder} that you may see, and you may not make it.")
        return found

    def _shown_folder(self, view: View, authority: PathAuthority, folder: TreePath) -> View | None:
        if view.hides(folder):
            return None
        if not self._standing[view.snapshot, folder] and authority.level(folder) < Level.READ_ADD:
            return None
        return view.within(folder)

    def known(self, project_id: ProjectId, opened: OpenedProject, folder: TreePath | None = None) -> View | None:
        """As `of_head`, or `of_folder` of it, if it can be told from memory."""
        snapshot = SnapshotKey(project_id=project_id, epoch=opened.epoch, seq=opened.seq)
        authority = opened.authority
        masked = frozenset() if authority.sees_everything else self._known.get((snapshot, authority.sight))
        if masked is None or (folder is not None and (snapshot, folder) not in self._standing):
            return None
        view = View(snapshot=snapshot, masked=masked)
        return view if folder is None else self._shown_folder(view, authority, folder)

    async def masked_around(
        self, connection: Connection, snapshot: SnapshotKey, prefix: TreePath
    ) -> frozenset[TreePath]:
        """What a token for one folder keeps from whoever may see everything."""
        return await self._masked(connection, snapshot, PathAuthority.of_folder(prefix))

    async def _masked(
        self, connection: Connection, snapshot: SnapshotKey, authority: PathAuthority
    ) -> frozenset[TreePath]:
        if authority.sees_everything:
            return frozenset()
        key = (snapshot, authority.sight)
        if key not in self._known:
            paths = await self._registry.paths_of(connection, snapshot.project_id, snapshot.seq)
            self._remember(key, await in_thread(masked_paths, paths, authority.sees))
        self._known.move_to_end(key)
        return self._known[key]

    def _remember(self, key: Hashable, masked: frozenset[TreePath]) -> None:
        self._known[key] = masked
        while len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def hides_more(masked: frozenset[TreePath], shown: View) -> bool:
    """Whether a mask covers something that a view shows, or would."""
    return any(not shown.hides(path) for path in masked)
