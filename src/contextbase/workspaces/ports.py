"""What workspaces need from below (a source of snapshots), and what they give (a provider of folders)."""

from collections.abc import AsyncIterator, Collection, Mapping
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Protocol

from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.workspaces.folder_scan import ScannedFolder
from contextbase.workspaces.model import (
    NOTHING_HELD,
    HeldContents,
    MirrorEntry,
    MirrorSync,
    SnapshotKey,
    View,
    Workspace,
    WorkspaceChanges,
    WorkspaceId,
)

__all__ = ["FolderBackend", "LocalContent", "Occupants", "SnapshotSource"]

LocalContent = bytes | Path
"""The bytes themselves, or a file that holds them and is only read."""


class SnapshotSource(Protocol):
    """Where a mirror gets its snapshots from. Snapshot 0 is the empty tree."""

    def changes(self, older: SnapshotKey, newer: Seq, *, below: TreePath | None = None) -> AsyncIterator[MirrorEntry]:
        """Every path at which the two snapshots differ, once, in any order: O(changes), and all of it from 0. With
        `below`: of this folder and what is in it, alone."""
        ...

    async def count_changes(self, older: SnapshotKey, newer: Seq, *, below: TreePath | None = None, most: int) -> int:
        """About how many `changes` would give, and `most` if there are more: to choose by."""
        ...

    async def standing(self, snapshot: SnapshotKey, folders: Collection[TreePath]) -> frozenset[TreePath]:
        """Those of the paths that are folders in the snapshot: as nodes, or because something lies below."""
        ...

    def contents(
        self, snapshot: SnapshotKey, hashes: Collection[ContentHash]
    ) -> AbstractAsyncContextManager[Mapping[ContentHash, LocalContent]]:
        """Each content; the files among them are there until the block ends."""
        ...


class FolderBackend(Protocol):
    """Makes private folders, and says what was done in them.

    Work in a folder outlives the process, and (overlay) the mount: `open_workspace` finds it again.
    """

    name: str

    async def create_workspace(self, workspace_id: WorkspaceId, view: View) -> Workspace:
        """A folder that shows the view; `Conflict` if the id is taken."""
        ...

    async def open_workspace(self, workspace_id: WorkspaceId) -> Workspace:
        """One that was made before, usable again after a crash or reboot; `NotFound` if there is none."""
        ...

    async def view_of(self, workspace_id: WorkspaceId) -> View:
        """What the workspace was given."""
        ...

    async def is_open(self, workspace_id: WorkspaceId) -> bool:
        """Whether its folder is there for programs now."""
        ...

    async def detect_changes(
        self, workspace_id: WorkspaceId, *, held: HeldContents = NOTHING_HELD, reads_gitignore: bool = True
    ) -> WorkspaceChanges:
        """What differs from the view. Reads the folder and changes nothing, while the agent may go on. `held`: what
        was committed from it or came into it since. Without `reads_gitignore` git's ignore files are files like
        others."""
        ...

    async def scan_folder(self, workspace_id: WorkspaceId, path: str) -> ScannedFolder:
        """What stands in one folder ('' is the top), as `scan_folders`; `NotFound` if there can be none."""
        ...

    async def scan_folders(self, workspace_id: WorkspaceId) -> list[ScannedFolder]:
        """What stands in the folders that are not wholly as in the view, a folder before those in it. Tells names and
        status alone, so it costs far less than `detect_changes`; where it can, it costs what changed."""
        ...

    async def work_folder(self, workspace_id: WorkspaceId) -> Path:
        """Where what the agent changed lies as plain files, whether the workspace is open or closed. The agent may
        write on: whoever reads compares the hash with the one that was detected."""
        ...

    async def close_workspace(self, workspace_id: WorkspaceId) -> None:
        """Let no agent change anything any more, until it is opened again; `Conflict` while a process is in it.
        Changes can be detected and read meanwhile."""
        ...

    async def cleanup(self, workspace_id: WorkspaceId) -> None:
        """Remove folder and work for good; harmless when it is gone already. `Conflict` while a process is in it."""
        ...

    async def remove_unfinished(self, workspace_id: WorkspaceId) -> bool:
        """Remove what a crash left of one that was being made or removed; False, and nothing is touched, if there
        could be work in it."""
        ...

    async def sync_lower(self, snapshot: SnapshotKey) -> MirrorSync:
        """Bring the snapshot to this machine, so that the next workspace on it costs nothing."""
        ...

    async def workspaces(self) -> tuple[WorkspaceId, ...]:
        """Those that are on this machine, whether in use or left by a crash."""
        ...

    async def open_view(self, view: View) -> Path:
        """A read-only folder that shows the view, shared by all who ask for the same."""
        ...

    async def close_view(self, view: View) -> None:
        """Remove it; `Conflict` while a process is in it, harmless when it is gone already."""
        ...

    async def close_other_views(self, kept: Collection[View]) -> None:
        """Remove all but these, and those a process is in."""
        ...


class SessionFolders(Protocol):
    """Who owns the session that an agent works in."""

    async def in_folder(self, caller: Caller, agent: str, project_id: ProjectId | None) -> Caller | None:
        """The owner at work in the session's folder, as its agent; None for everybody else. `project_id`: None: any."""
        ...


class Occupants(Protocol):
    """Who else is in workspaces' folders: a mount can be taken down under a sandbox that has it bound, and what is
    written there afterwards would be lost."""

    async def leave(self, workspace_id: WorkspaceId) -> None:
        """When this returns nothing of theirs is in the folder; `Conflict` when somebody will not leave now."""
        ...
