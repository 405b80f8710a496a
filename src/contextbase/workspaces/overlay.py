"""Workspaces as overlay mounts: made in a millisecond, and every change of the agent's lies in the upper folder.

<root>/overlay/<id>/upper/  the agent's work
<root>/overlay/<id>/work/   the kernel's
<root>/workspaces/<id>      the mount
"""

import errno
import os
from enum import StrEnum
from pathlib import Path
from typing import Final

from contextbase.errors import Conflict, MachineProblem, NotFound
from contextbase.ids import TreePath
from contextbase.storage.blobs.disk import explained
from contextbase.storage.blobs.waiting import in_thread
from contextbase.workspaces.detection import detect
from contextbase.workspaces.folder import Folder, attribute_of, open_in
from contextbase.workspaces.layer_view import LayerView, ViewEntry
from contextbase.workspaces.locks import file_lock
from contextbase.workspaces.mirror import Mirror, Stack
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import (
    Limits,
    SnapshotKey,
    SyncResult,
    View,
    Workspace,
    WorkspaceChanges,
    WorkspaceId,
)
from contextbase.workspaces.places import Places
from contextbase.workspaces.syscalls import file_handle, is_whiteout, mount_overlay, unmount

__all__ = ["OverlayProvider", "XattrKind", "overlay_options"]

_OPTIONS: Final = (("index", "off"), ("xino", "off"), ("redirect_dir", "off"), ("metacopy", "off"))
"""Said, not left to the machine: with redirects or metacopy the upper would not hold what the agent sees."""
_ORIGIN_TYPE: Final = 4  # offsets in the kernel's `struct ovl_fb`
_ORIGIN_HANDLE: Final = 21


class XattrKind(StrEnum):
    """The name space of the marks that the kernel sets in an upper."""

    TRUSTED = "trusted"
    USER = "user"  # for a mount in a user namespace


class OverlayProvider:
    name = "overlay"

    def __init__(
        self, root: Path, mirrors: Mirrors, *, xattr_kind: XattrKind = XattrKind.TRUSTED, limits: Limits | None = None
    ) -> None:
        self._mirrors = mirrors
        self._places = Places(root, self.name, owner=mirrors.owner)
        self._xattr_kind = xattr_kind
        self._limits = limits or Limits()

    async def create_workspace(self, workspace_id: WorkspaceId, view: View) -> Workspace:
        mirror = self._mirrors.of(view.snapshot)
        stack = mirror.known(view)
        if stack is not None and await in_thread(self._create, mirror, workspace_id, stack):
            return self._workspace(workspace_id, view)
        stack = await mirror.pin(str(workspace_id), view)
        if not await in_thread(self._create, mirror, workspace_id, stack):
            raise MachineProblem(f"The layers of snapshot {view.snapshot.seq} vanished while they were in use.")
        return self._workspace(workspace_id, view)

    async def open_workspace(self, workspace_id: WorkspaceId) -> Workspace:
        workspace = await in_thread(self._places.read, workspace_id)
        mirror = self._mirrors.of(workspace.view.snapshot)
        stack = await in_thread(mirror.pinned, str(workspace_id), workspace.view)
        if stack is None:
            stack = await mirror.pin(str(workspace_id), workspace.view)
        await in_thread(self._mount_again, workspace_id, stack)
        return workspace

    async def detect_changes(self, workspace_id: WorkspaceId) -> WorkspaceChanges:
        return await in_thread(self._detect, workspace_id)

    async def open_file(self, workspace_id: WorkspaceId, path: TreePath) -> int:
        workspace = await self.open_workspace(workspace_id)
        return await in_thread(open_in, workspace.path, path)

    async def cleanup(self, workspace_id: WorkspaceId) -> None:
        await in_thread(self._cleanup, workspace_id)

    async def sync_lower(self, snapshot: SnapshotKey) -> SyncResult:
        return await self._mirrors.of(snapshot).sync(snapshot)

    async def workspaces(self) -> tuple[WorkspaceId, ...]:
        return await in_thread(self._places.ids)

    async def open_view(self, view: View) -> Path:
        path = self._places.view(view)
        if not _is_mounted(path):
            stack = await self._mirrors.of(view.snapshot).pin(path.name, view)
            await in_thread(self._mount_view, path, stack)
        return path

    async def close_view(self, view: View) -> None:
        path = self._places.view(view)
        await in_thread(self._unmount_view, path)
        self._mirrors.of(view.snapshot).unpin(path.name)

    def _create(self, mirror: Mirror, workspace_id: WorkspaceId, stack: Stack) -> bool:
        """False when a layer of the stack is gone: nothing was made then."""
        with explained(self._places.root):
            state = self._places.reserve(workspace_id)
            if not mirror.pin_known(str(workspace_id), stack):
                state.rmdir()
                return False
            try:
                self._places.make_folder(state / "upper")
                (state / "work").mkdir(mode=0o700)
                self._places.path(workspace_id).mkdir(mode=0o755)
                self._places.note(workspace_id, stack.view)
                self._mount(workspace_id, stack)
            except OSError:
                self._places.remove(workspace_id)
                mirror.unpin(str(workspace_id))
                raise
            return True

    def _mount(self, workspace_id: WorkspaceId, stack: Stack) -> None:
        state = self._places.state(workspace_id)
        mount_overlay(
            str(self._places.path(workspace_id)),
            lower=[str(folder) for folder in stack.folders],
            upper=str(state / "upper"),
            work=str(state / "work"),
            options=overlay_options(self._xattr_kind),
        )

    def _mount_again(self, workspace_id: WorkspaceId, stack: Stack) -> None:
        """The kernel would mount one upper twice, and spoil it: only who holds the lock, and sees no mount, may."""
        path = self._places.path(workspace_id)
        with explained(self._places.root), file_lock(self._places.state(workspace_id) / "lock"):
            path.mkdir(mode=0o755, exist_ok=True)
            if not _is_mounted(path):
                self._mount(workspace_id, stack)

    def _detect(self, workspace_id: WorkspaceId) -> WorkspaceChanges:
        workspace = self._places.read(workspace_id)
        stack = self._mirrors.of(workspace.view.snapshot).pinned(str(workspace_id), workspace.view)
        if stack is None:
            raise NotFound(f"The workspace {workspace_id} has lost its layers; open it again first.")
        with explained(self._places.root), Folder(self._places.state(workspace_id) / "upper") as upper:
            return detect(
                upper,
                LayerView(stack.folders),
                _OverlayTraces(self._xattr_kind),
                base=workspace.view.snapshot,
                limits=self._limits,
            )

    def _cleanup(self, workspace_id: WorkspaceId) -> None:
        with explained(self._places.root):
            _unmount(self._places.path(workspace_id))
            try:
                workspace = self._places.read(workspace_id)
            except NotFound:
                workspace = None  # never finished, or half removed
            self._places.remove(workspace_id)
            if workspace is not None:
                self._mirrors.of(workspace.view.snapshot).unpin(str(workspace_id))

    def _mount_view(self, path: Path, stack: Stack) -> None:
        with explained(self._places.root), file_lock(path.with_name(f"{path.name}.lock")):
            path.mkdir(mode=0o755, exist_ok=True)
            if not _is_mounted(path):
                lower = [str(folder) for folder in stack.folders]
                if len(lower) == 1:
                    lower *= 2  # without an upper the kernel wants two
                mount_overlay(str(path), lower=lower, options=overlay_options(self._xattr_kind))

    def _unmount_view(self, path: Path) -> None:
        lock = path.with_name(f"{path.name}.lock")
        with explained(self._places.root), file_lock(lock):
            _unmount(path)
            if path.is_dir():
                path.rmdir()

    def _workspace(self, workspace_id: WorkspaceId, view: View) -> Workspace:
        return Workspace(id=workspace_id, view=view, path=self._places.path(workspace_id))


class _OverlayTraces:
    def __init__(self, xattr_kind: XattrKind) -> None:
        self._opaque = f"{xattr_kind}.overlay.opaque"
        self._origin = f"{xattr_kind}.overlay.origin"

    def is_complete(self, folder: Folder, path: str) -> bool:
        return folder.attribute(path, self._opaque) == b"y"

    def is_whiteout(self, status: os.stat_result) -> bool:
        return is_whiteout(status)

    def is_untouched(self, path: str, status: os.stat_result) -> bool:  # noqa: ARG002 - what is in the upper was touched
        return False

    def origin_of(self, descriptor: int) -> bytes | None:
        mark = attribute_of(descriptor, self._origin)
        if mark is None or len(mark) <= _ORIGIN_HANDLE:
            return None
        return mark[_ORIGIN_TYPE : _ORIGIN_TYPE + 1] + mark[_ORIGIN_HANDLE:]

    def identity_in_view(self, path: TreePath, entry: ViewEntry) -> bytes | None:  # noqa: ARG002 - the layer knows
        return file_handle(os.fsencode(entry.file))


def overlay_options(xattr_kind: XattrKind) -> tuple[tuple[str, str | None], ...]:
    return (*_OPTIONS, ("userxattr", None)) if xattr_kind is XattrKind.USER else _OPTIONS


def _is_mounted(path: Path) -> bool:
    try:
        return path.lstat().st_dev != path.parent.lstat().st_dev
    except FileNotFoundError:
        return False


def _unmount(path: Path) -> None:
    if not _is_mounted(path):
        return
    try:
        unmount(str(path))
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise Conflict(f"A process still works in {path}; stop it, then try again. Nothing was removed.") from error
