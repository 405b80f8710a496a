"""What calls about workspaces come to, and the record that a new one begins with."""

from dataclasses import dataclass

from contextbase.gate.service import OpenedProject
from contextbase.identity.model import Caller
from contextbase.ids import SystemClock, TreePath, new_uuid
from contextbase.workspaces.checkpoints import Committed
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import View, WorkspaceId
from contextbase.workspaces.ports import FolderBackend
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceState

__all__ = ["Completed", "Created", "new_record"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    record: WorkspaceRecord
    is_new: bool  # False: the agent had this one already


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    record: WorkspaceRecord
    committed: Committed
    is_removed: bool
    kept_because: tuple[str, ...] = ()  # sentences: why the folder is still there, and how to go on


def new_record(
    acting: Caller, node: Machine, provider: FolderBackend, opened: OpenedProject, view: View, *, has_metadata: bool
) -> WorkspaceRecord:
    """Of an agent's workspace that shows a view of the opened project."""
    now = SystemClock().now()
    workspace_id = WorkspaceId(int=new_uuid().int)
    return WorkspaceRecord(
        id=workspace_id,
        project_id=view.snapshot.project_id,
        principal=acting.principal,
        node=node.name,
        provider=provider.name,
        path=node.root / "workspaces" / str(workspace_id),
        epoch=view.snapshot.epoch,
        base=view.snapshot.seq,
        policy_version=opened.policy.version,
        scope=_scope(acting.grant.path_prefix, view.folder),
        folder=view.folder,
        has_metadata=has_metadata,
        state=WorkspaceState.OPEN,
        checkpoint=0,
        pending=None,
        refreshed=None,
        refresh=None,
        created_at=now,
        seen_at=now,
        ended_at=None,
    )


def _scope(granted: TreePath | None, folder: TreePath | None) -> str:
    """The narrower of the two; what is shown lies in both."""
    if granted is None or folder is None:
        return granted or folder or ""
    return granted if granted.is_below(folder) else folder
