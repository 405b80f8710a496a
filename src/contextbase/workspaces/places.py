"""Where workspaces lie on this machine, and the note each keeps of the view it was made from.

<root>/<provider>/<id>/  0700: workspace.json, lock, and what the provider adds
<root>/workspaces/<id>   where the agent works
<root>/views/<name>      read-only, shared
<root>/removed/<id>…     on its way out: nothing in it is wanted any more
"""

import json
import os
from hashlib import sha256
from pathlib import Path
from typing import Final
from uuid import UUID, uuid4

from contextbase.errors import Conflict, Damaged, NotFound
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.workspaces.folder import remove_tree
from contextbase.workspaces.model import Owner, SnapshotKey, View, Workspace, WorkspaceId
from contextbase.workspaces.syscalls import Rename, rename

__all__ = ["Places", "view_name"]

_NOTE: Final = "workspace.json"
_VIEW: Final = "view-"


class Places:
    """Every method blocks for a moment."""

    def __init__(self, root: Path, provider: str, *, owner: Owner) -> None:
        self.root = root
        self._owner = owner
        self._states = root / provider
        self._removed = root / "removed"
        for place, mode in (
            (root, 0o711),  # agents of another account pass through, and see no names
            (root / "workspaces", 0o711),
            (root / "views", 0o711),
            (self._states, 0o700),
            (self._removed, 0o700),
        ):
            place.mkdir(mode=mode, parents=True, exist_ok=True)
            if place != root:
                place.chmod(mode)  # the umask may have taken bits

    def state(self, workspace_id: WorkspaceId) -> Path:
        return self._states / str(workspace_id)

    def path(self, workspace_id: WorkspaceId) -> Path:
        return self.root / "workspaces" / str(workspace_id)

    def view(self, view: View) -> Path:
        return self.root / "views" / view_name(view)

    def reserve(self, workspace_id: WorkspaceId) -> Path:
        """Make the state's folder; `Conflict` when there is one."""
        state = self.state(workspace_id)
        try:
            state.mkdir(mode=0o700)
        except FileExistsError:
            raise Conflict(f"There is a workspace {workspace_id} on this machine already.") from None
        return state

    def make_folder(self, path: Path) -> None:
        """One that the agents' account owns."""
        path.mkdir(mode=0o755)
        if self._owner != Owner.of_this_process():
            os.chown(path, self._owner.uid, self._owner.gid)

    def note(self, workspace_id: WorkspaceId, view: View) -> None:
        snapshot = view.snapshot
        written = {
            "project_id": str(snapshot.project_id),
            "epoch": str(snapshot.epoch),
            "seq": snapshot.seq,
            "masked": sorted(view.masked),
        }
        draft = self.state(workspace_id) / f"{_NOTE}.draft"
        draft.write_text(json.dumps(written), encoding="utf-8")
        draft.rename(draft.with_name(_NOTE))

    def read(self, workspace_id: WorkspaceId) -> Workspace:
        """`NotFound` if there is none, or if making it was never finished."""
        note = self.state(workspace_id) / _NOTE
        try:
            written = json.loads(note.read_text(encoding="utf-8"))
            snapshot = SnapshotKey(
                project_id=ProjectId(UUID(written["project_id"])),
                epoch=UUID(written["epoch"]),
                seq=Seq(written["seq"]),
            )
            masked = frozenset(TreePath.stored(path) for path in written["masked"])
        except FileNotFoundError:
            raise NotFound(f"There is no workspace {workspace_id} on this machine.") from None
        except (ValueError, KeyError, TypeError) as error:
            raise Damaged(
                f"{note} is not what was written there; the agent's files beside it are untouched."
            ) from error
        return Workspace(id=workspace_id, view=View(snapshot=snapshot, masked=masked), path=self.path(workspace_id))

    def ids(self) -> tuple[WorkspaceId, ...]:
        """Also those that were never finished, or not removed to the end."""
        names = {entry.name.partition(".")[0] for place in (self._states, self._removed) for entry in place.iterdir()}
        return tuple(sorted(WorkspaceId(name) for name in names if not name.startswith(_VIEW)))

    def remove(self, workspace_id: WorkspaceId) -> None:
        """Both folders, at once for everyone who looks, then for good. What crashes left goes along."""
        for folder in (self.state(workspace_id), self.path(workspace_id)):
            if folder.is_dir():
                rename(str(folder), str(self._removed / f"{workspace_id}.{uuid4().hex}"), Rename.NOREPLACE)
        for leftover in self._removed.glob(f"{workspace_id}.*"):
            remove_tree(leftover)

    def draft_of_view(self, path: Path) -> Path:
        """Where to make a view, to be moved to its path when it is whole."""
        return self._removed / f"{path.name}.{uuid4().hex}"

    def remove_view(self, path: Path) -> None:
        if path.is_dir():
            draft = self.draft_of_view(path)
            rename(str(path), str(draft), Rename.NOREPLACE)
            remove_tree(draft)


def view_name(view: View) -> str:
    """Equal for equal views; says nothing about what is hidden."""
    snapshot = view.snapshot
    parts = [str(snapshot.project_id), str(snapshot.epoch), *sorted(view.masked)]
    return f"{_VIEW}{snapshot.seq}-{sha256(chr(0).join(parts).encode()).hexdigest()[:32]}"
