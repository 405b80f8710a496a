"""Where workspaces lie on this machine.

<root>/workspaces/<id>   where the agent works
<root>/<provider>/<id>   0700: what the provider keeps for it
<root>/pins/<id>         the view it was made from
<root>/views/<name>      read-only, shared
<root>/removed/<id>.…    on its way out: nothing in it is wanted any more
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.errors import Conflict, NotFound
from contextbase.workspaces.folder import remove_tree
from contextbase.workspaces.locks import file_lock
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import Owner, View, Workspace, WorkspaceId
from contextbase.workspaces.pins import Stack
from contextbase.workspaces.quotas import ProjectQuotas
from contextbase.workspaces.syscalls import Rename, rename

__all__ = ["WorkspaceFolders"]

_VIEW: Final = "view-"


class WorkspaceFolders:
    """Every method blocks for a moment."""

    def __init__(
        self, root: Path, mirrors: Mirrors, *, kept: tuple[str, ...], quotas: ProjectQuotas | None = None
    ) -> None:
        """`kept`: the folders that hold something of each workspace; the first of them reserves its id."""
        self.root = root
        self.pins = mirrors.pins
        self._names = mirrors.names
        self._quotas = quotas
        self._owner = mirrors.owner
        self._kept = [str(root / name) for name in kept]
        self._paths = str(root / "workspaces")
        self._removed = root / "removed"
        root.mkdir(mode=0o711, parents=True, exist_ok=True)
        modes = {"workspaces": 0o711, "views": 0o711}  # agents of another account pass through, and see no names
        for name in ("workspaces", "views", "locks", "removed", *kept):
            (root / name).mkdir(mode=0o700, exist_ok=True)
            (root / name).chmod(modes.get(name, 0o700))

    def kept(self, workspace_id: WorkspaceId) -> list[str]:
        return [f"{place}/{workspace_id}" for place in self._kept]

    def path(self, workspace_id: WorkspaceId) -> str:
        return f"{self._paths}/{workspace_id}"

    @contextmanager
    def locked(self, workspace_id: WorkspaceId) -> Iterator[None]:
        """Nobody else on this machine mounts or removes the workspace until the block ends. That it is still there
        must be looked up inside: the lock goes with it."""
        with file_lock(self.root / "locks" / str(workspace_id)):
            yield

    @contextmanager
    def views_locked(self) -> Iterator[None]:
        with file_lock(self.root / "locks" / "views"):
            yield

    def view(self, view: View) -> Path:
        return self.root / "views" / self._view_name(view)

    def views_but(self, kept: Collection[View]) -> list[Path]:
        """Those that are there, apart from these."""
        names = {self._view_name(view) for view in kept}
        folder = self.root / "views"
        return [path for path in folder.iterdir() if path.name.startswith(_VIEW) and path.name not in names]

    def reserve(self, workspace_id: WorkspaceId, *, mode: int = 0o700) -> None:
        """Make the first of the kept folders; `Conflict` when there is one."""
        try:
            os.mkdir(self.kept(workspace_id)[0], mode)  # noqa: PTH102 - a Path costs more than the folder
        except FileExistsError:
            raise Conflict(f"There is a workspace {workspace_id} on this machine already.") from None

    def hand_over(self, path: str) -> None:
        """To the agents' account."""
        if self._owner != Owner.of_this_process():
            os.chown(path, self._owner.uid, self._owner.gid)

    def read(self, workspace_id: WorkspaceId) -> tuple[Workspace, Stack]:
        stack = self.pins.read(str(workspace_id))
        if stack is None or not os.path.isdir(self.kept(workspace_id)[0]):  # noqa: PTH112 - a Path costs more than the look
            raise NotFound(f"There is no workspace {workspace_id} on this machine.")
        return Workspace(id=workspace_id, view=stack.view, path=Path(self.path(workspace_id))), stack

    def read_whole(self, workspace_id: WorkspaceId) -> tuple[Workspace, Stack]:
        """As `read`; `Conflict` when a layer is missing, without which others' files would look like the agent's."""
        workspace, stack = self.read(workspace_id)
        if not stack.is_there():
            raise Conflict(f"The workspace {workspace_id} has lost a layer of its mirror; open it again first.")
        return workspace, stack

    def ids(self) -> tuple[WorkspaceId, ...]:
        """Also those that were never finished, or not removed to the end."""
        places = [Path(self._kept[0]), self._removed]
        names = {entry.name.partition(".")[0] for place in places for entry in place.iterdir()}
        return tuple(sorted(WorkspaceId(name) for name in names if not name.startswith(_VIEW)))

    def remove(self, workspace_id: WorkspaceId) -> None:
        """All its folders, each at once for everyone who looks, then for good. What crashes left goes along.

        The one that reserves its id goes first: without that it is not found any more, should this be cut off."""
        reserving, *others = self.kept(workspace_id)
        for folder in (reserving, self.path(workspace_id), *others):
            self._take_away(folder, str(workspace_id))
        self.pins.remove(str(workspace_id))
        (self.root / "locks" / str(workspace_id)).unlink(missing_ok=True)
        for leftover in self._removed.glob(f"{workspace_id}.*"):
            if self._quotas is not None:
                self._quotas.lift(str(leftover))
            remove_tree(leftover)

    def draft_of_view(self, path: Path) -> Path:
        """Where to make a view, to be moved to its path when it is whole."""
        return self._removed / f"{path.name}.{uuid4().hex}"

    def remove_view(self, path: Path) -> None:
        self._take_away(str(path), path.name)
        self.pins.remove(path.name)
        for leftover in self._removed.glob(f"{path.name}.*"):
            remove_tree(leftover)

    def _take_away(self, folder: str, name: str) -> None:
        try:
            rename(folder, f"{self._removed}/{name}.{uuid4().hex}", Rename.NOREPLACE)
        except FileNotFoundError:
            return

    def _view_name(self, view: View) -> str:
        """Equal for equal views."""
        snapshot = view.snapshot
        about = ("view",) if view.folder is None else ("view of a folder", view.folder)
        parts = [str(snapshot.project_id), str(snapshot.epoch), str(snapshot.seq), *sorted(view.masked)]
        return f"{_VIEW}{self._names.name(*about, *parts)}"
