"""What backends of folders on this machine have in common: each call is a blocking one, made in a thread."""

from abc import ABC, abstractmethod
from pathlib import Path

from contextbase.durable import explained
from contextbase.threads import in_thread
from contextbase.workspaces.detection import detect
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.folder_scan import ScannedFolder, found_in, scan_folder, scan_folders
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import (
    NOTHING_HELD,
    HeldContents,
    MirrorSync,
    ScanLimits,
    SnapshotKey,
    View,
    WorkspaceChanges,
    WorkspaceId,
)
from contextbase.workspaces.quotas import ProjectQuotas
from contextbase.workspaces.traces import FolderTraces, Traces
from contextbase.workspaces.workspace_folders import WorkspaceFolders

__all__ = ["LocalBackend"]


class LocalBackend(ABC):
    def __init__(
        self,
        root: Path,
        mirrors: Mirrors,
        *,
        kept: tuple[str, ...],
        traces: FolderTraces,
        limits: ScanLimits | None,
        quotas: ProjectQuotas | None,
    ) -> None:
        """`kept` as `WorkspaceFolders` has it; `traces`: what a look at the names alone can go by."""
        self._mirrors = mirrors
        self._places = WorkspaceFolders(root, mirrors, kept=kept, quotas=quotas)
        self._traces = traces
        self._quotas = quotas
        self._limits = limits or ScanLimits()

    async def view_of(self, workspace_id: WorkspaceId) -> View:
        workspace, _ = await in_thread(self._places.read, workspace_id)
        return workspace.view

    async def detect_changes(
        self, workspace_id: WorkspaceId, *, held: HeldContents = NOTHING_HELD, reads_gitignore: bool = True
    ) -> WorkspaceChanges:
        return await in_thread(self._detect, workspace_id, held, reads_gitignore)

    async def scan_folder(self, workspace_id: WorkspaceId, path: str) -> ScannedFolder:
        return await in_thread(self._scan_folder, workspace_id, path)

    async def scan_folders(self, workspace_id: WorkspaceId) -> list[ScannedFolder]:
        return await in_thread(self._scan_folders, workspace_id)

    async def work_folder(self, workspace_id: WorkspaceId) -> Path:
        return self._work_folder(workspace_id)

    async def close_workspace(self, workspace_id: WorkspaceId) -> None:
        await in_thread(self._close, workspace_id)

    async def cleanup(self, workspace_id: WorkspaceId) -> None:
        await in_thread(self._cleanup, workspace_id)

    async def remove_unfinished(self, workspace_id: WorkspaceId) -> bool:
        return await in_thread(self._remove_unfinished, workspace_id)

    async def sync_lower(self, snapshot: SnapshotKey) -> MirrorSync:
        return await self._mirrors.of(snapshot).sync(snapshot)

    async def workspaces(self) -> tuple[WorkspaceId, ...]:
        return await in_thread(self._places.ids)

    async def close_view(self, view: View) -> None:
        await in_thread(self._close_view, self._places.view(view))

    @abstractmethod
    def _work_folder(self, workspace_id: WorkspaceId) -> Path:
        """Where what the agent changed lies, or all of its files."""

    @abstractmethod
    def _traces_of(self, workspace_id: WorkspaceId) -> Traces:
        """What its changes are told by."""

    @abstractmethod
    def _close(self, workspace_id: WorkspaceId) -> None: ...

    @abstractmethod
    def _cleanup(self, workspace_id: WorkspaceId) -> None: ...

    @abstractmethod
    def _remove_unfinished(self, workspace_id: WorkspaceId) -> bool: ...

    @abstractmethod
    def _close_view(self, path: Path) -> None: ...

    def _detect(self, workspace_id: WorkspaceId, held: HeldContents, reads_gitignore: bool) -> WorkspaceChanges:
        workspace, stack = self._places.read_whole(workspace_id)
        traces = self._traces_of(workspace_id)
        with explained(self._places.root), Folder(self._work_folder(workspace_id)) as folder:
            return detect(
                folder,
                self._mirrors.layer_view(stack),
                traces,
                given=workspace.view,
                held=held,
                limits=self._limits,
                reads_gitignore=reads_gitignore,
            )

    def _scan_folder(self, workspace_id: WorkspaceId, path: str) -> ScannedFolder:
        with explained(self._places.root), found_in(path), Folder(self._work_folder(workspace_id)) as folder:
            return scan_folder(folder, self._traces, path)

    def _scan_folders(self, workspace_id: WorkspaceId) -> list[ScannedFolder]:
        with explained(self._places.root), Folder(self._work_folder(workspace_id)) as folder:
            return scan_folders(folder, self._traces)
