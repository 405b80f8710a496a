"""Workspaces as overlay mounts: made in a millisecond, and every change of the agent's lies in the upper folder.

<root>/upper/<id>       the agent's work
<root>/work/<id>        the kernel's
<root>/workspaces/<id>  the mount
"""

import errno
import os
from collections.abc import Collection
from contextlib import AbstractContextManager, nullcontext, suppress
from enum import StrEnum
from pathlib import Path
from typing import Final

from contextbase.durable import explained
from contextbase.errors import Conflict, Damaged, TooBusy
from contextbase.ids import TreePath
from contextbase.threads import in_thread
from contextbase.workspaces.folder import attribute_of
from contextbase.workspaces.layer_view import ViewEntry
from contextbase.workspaces.local_backend import LocalBackend
from contextbase.workspaces.mirror import Mirror
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import (
    ScanLimits,
    View,
    Workspace,
    WorkspaceId,
)
from contextbase.workspaces.pins import Stack
from contextbase.workspaces.quotas import ProjectQuotas
from contextbase.workspaces.strays import keep_strays, removed_if_empty
from contextbase.workspaces.syscalls import file_handle, is_whiteout, mount_overlay, unmount
from contextbase.workspaces.traces import FolderTrace, Traces

__all__ = ["OverlayBackend", "XattrKind", "overlay_options"]

_OPTIONS: Final = (("index", "off"), ("xino", "off"), ("metacopy", "off"))
"""Said, not left to the machine: with metacopy the upper would not hold what the agent wrote."""
_ORIGIN_TYPE: Final = 4  # offsets in the kernel's `struct ovl_fb`
_ORIGIN_HANDLE: Final = 21


class XattrKind(StrEnum):
    """The name space of the marks that the kernel sets in an upper."""

    TRUSTED = "trusted"
    USER = "user"  # for a mount in a user namespace


class OverlayBackend(LocalBackend):
    name = "overlay"

    def __init__(
        self,
        root: Path,
        mirrors: Mirrors,
        *,
        xattr_kind: XattrKind = XattrKind.TRUSTED,
        limits: ScanLimits | None = None,
        quotas: ProjectQuotas | None = None,
    ) -> None:
        self._marks = _OverlayTraces(xattr_kind)
        super().__init__(root, mirrors, kept=("upper", "work"), traces=self._marks, limits=limits, quotas=quotas)
        self._xattr_kind = xattr_kind

    async def create_workspace(self, workspace_id: WorkspaceId, view: View) -> Workspace:
        mirror = self._mirrors.of(view.snapshot)
        stack = mirror.known(view)
        if stack is None or not await in_thread(self._create, mirror, workspace_id, stack):
            stack = await mirror.built(view)
            if not await in_thread(self._create, mirror, workspace_id, stack):
                raise TooBusy(f"The layers of snapshot {view.snapshot.seq} were removed to make room; try again.")
        return Workspace(id=workspace_id, view=view, path=Path(self._places.path(workspace_id)))

    async def open_workspace(self, workspace_id: WorkspaceId) -> Workspace:
        workspace, stack = await in_thread(self._places.read, workspace_id)
        await self._mirrors.of(workspace.view.snapshot).pinned_again(str(workspace_id), stack)
        return await in_thread(self._open, workspace_id)

    async def is_open(self, workspace_id: WorkspaceId) -> bool:
        return await in_thread(_is_mounted, self._places.path(workspace_id))

    async def open_view(self, view: View) -> Path:
        path = self._places.view(view)
        mirror = self._mirrors.of(view.snapshot)
        stack = mirror.known(view) or await mirror.built(view)
        if not await in_thread(self._mount_view, mirror, path, stack):
            stack = await mirror.built(view)
            if not await in_thread(self._mount_view, mirror, path, stack):
                raise TooBusy(f"The layers of snapshot {view.snapshot.seq} were removed to make room; try again.")
        return path

    async def close_other_views(self, kept: Collection[View]) -> None:
        for path in await in_thread(self._places.views_but, kept):
            with suppress(Conflict):
                await in_thread(self._close_view, path)

    def _create(self, mirror: Mirror, workspace_id: WorkspaceId, stack: Stack) -> bool:
        """False when a layer of the stack is gone: nothing was made then."""
        with explained(self._places.root):
            self._places.reserve(workspace_id, mode=0o755)
            try:
                path = self._places.path(workspace_id)
                upper, work = self._places.kept(workspace_id)
                self._places.hand_over(upper)
                os.mkdir(work, 0o700)  # noqa: PTH102 - a Path costs more than the folder
                os.mkdir(path, 0o755)  # noqa: PTH102 - likewise
                if self._quotas is not None:
                    self._quotas.gather(upper, work, path)
                    self._quotas.limit(upper)
                found = mirror.pin_known(str(workspace_id), stack)
                if found:
                    self._mount(workspace_id, stack)
            except (OSError, TooBusy):
                self._places.remove(workspace_id)
                raise
            if not found:
                self._places.remove(workspace_id)
            return found

    def _mount(self, workspace_id: WorkspaceId, stack: Stack) -> None:
        upper, work = self._places.kept(workspace_id)
        options = overlay_options(self._xattr_kind)
        mount_overlay(self._places.path(workspace_id), lower=stack.shown, upper=upper, work=work, options=options)

    def _open(self, workspace_id: WorkspaceId) -> Workspace:
        """The kernel would mount one upper twice, and spoil it: only who holds the lock, and sees no mount, may."""
        with explained(self._places.root), self._places.locked(workspace_id):
            workspace, stack = self._places.read(workspace_id)
            if not _is_mounted(str(workspace.path)):
                with self._room_in(workspace_id):
                    self._keep_strays(workspace_id)
                    workspace.path.mkdir(mode=0o755, exist_ok=True)
                    if self._quotas is not None:  # or what is written to the bare folder could not be moved to the rest
                        self._quotas.join(str(workspace.path), other=self._places.kept(workspace_id)[0])
                    self._mount(workspace_id, stack)
        return workspace

    def _room_in(self, workspace_id: WorkspaceId) -> AbstractContextManager[None]:
        """The kernel mounts read-only where it cannot make its folder: in a full workspace nothing could be removed."""
        return nullcontext() if self._quotas is None else self._quotas.with_room(self._places.kept(workspace_id)[0])

    def _keep_strays(self, workspace_id: WorkspaceId) -> None:
        """Written to the bare folder after a reboot, perhaps, or while the kernel took the mount down."""
        keep_strays(self._places.path(workspace_id), work=self._work_folder(workspace_id), owner=self._mirrors.owner)

    def _work_folder(self, workspace_id: WorkspaceId) -> Path:
        return Path(self._places.kept(workspace_id)[0])

    def _traces_of(self, workspace_id: WorkspaceId) -> Traces:  # noqa: ARG002 - the marks are with the files
        return self._marks

    def _close(self, workspace_id: WorkspaceId) -> None:
        with explained(self._places.root), self._places.locked(workspace_id):
            _unmount(self._places.path(workspace_id))
            if not removed_if_empty(self._places.path(workspace_id)):  # else whoever writes there now is told so
                with self._room_in(workspace_id):
                    self._keep_strays(workspace_id)

    def _cleanup(self, workspace_id: WorkspaceId) -> None:
        with explained(self._places.root), self._places.locked(workspace_id):
            _unmount(self._places.path(workspace_id))
            self._places.remove(workspace_id)

    def _remove_unfinished(self, workspace_id: WorkspaceId) -> bool:
        """A mount comes after the pin, so without one nobody was in it, unless a power cut took the pin alone."""
        with explained(self._places.root), self._places.locked(workspace_id):
            upper = self._work_folder(workspace_id)
            if self._places.pins.read(str(workspace_id)) is not None or (upper.is_dir() and any(upper.iterdir())):
                return False
            _unmount(self._places.path(workspace_id))
            self._places.remove(workspace_id)
            return True

    def _mount_view(self, mirror: Mirror, path: Path, stack: Stack) -> bool:
        """False when a layer of the stack is gone."""
        with explained(self._places.root), self._places.views_locked():
            if not _is_mounted(str(path)):
                if not mirror.pin_known(path.name, stack):
                    return False
                path.mkdir(mode=0o755, exist_ok=True)
                mount_overlay(str(path), lower=stack.shown, options=overlay_options(self._xattr_kind))
            return True

    def _close_view(self, path: Path) -> None:
        with explained(self._places.root), self._places.views_locked():
            _unmount(str(path))
            self._places.remove_view(path)


class _OverlayTraces:
    def __init__(self, xattr_kind: XattrKind) -> None:
        self._opaque = f"{xattr_kind}.overlay.opaque"
        self._origin = f"{xattr_kind}.overlay.origin"
        # An agent can set user attributes itself, and the kernel does not follow those.
        self._redirect = f"{xattr_kind}.overlay.redirect" if xattr_kind is XattrKind.TRUSTED else None

    def trace_of(self, folder: int, path: str, above: str | None) -> FolderTrace:
        if not path:
            return FolderTrace(was="", shows=True)
        if attribute_of(folder, self._opaque) == b"y":
            return FolderTrace(was=None)
        redirect = None if self._redirect is None else attribute_of(folder, self._redirect)
        if redirect is not None:
            return FolderTrace(was=_redirected(os.fsdecode(redirect), path, above), shows=True)
        if above is None:
            return FolderTrace(was=None)
        name = path.rpartition("/")[2]
        return FolderTrace(was=f"{above}/{name}" if above else name, shows=True)

    def is_whiteout(self, status: os.stat_result) -> bool:
        return is_whiteout(status)

    def is_untouched(self, path: str, status: os.stat_result) -> bool:  # noqa: ARG002 - what is in the upper was touched
        return False

    def origin_of(self, descriptor: int) -> bytes | None:
        return _handle_in(attribute_of(descriptor, self._origin))

    def origin_of_link(self, folder: int, name: str) -> bytes | None:
        return _handle_in(attribute_of(f"/proc/self/fd/{folder}/{name}", self._origin))

    def identity_in_view(self, path: TreePath, entry: ViewEntry) -> bytes | None:  # noqa: ARG002 - the layer knows
        return file_handle(os.fsencode(entry.file))


def _handle_in(mark: bytes | None) -> bytes | None:
    """As `file_handle` has it, in what the kernel notes about where a file came from."""
    if mark is None or len(mark) <= _ORIGIN_HANDLE:
        return None
    return mark[_ORIGIN_TYPE : _ORIGIN_TYPE + 1] + mark[_ORIGIN_HANDLE:]


def _redirected(redirect: str, path: str, above: str | None) -> str:
    """Which folder of the view a renamed one is: named from the top, or in the folder of the view that is above it."""
    parts = redirect.removeprefix("/").split("/")
    is_whole = redirect.startswith("/")
    if not {"", ".", ".."}.isdisjoint(parts) or (not is_whole and (above is None or len(parts) > 1)):
        raise Damaged(
            f"The folder {path!r} of a workspace says that it was {redirect!r}, which no folder can have been."
        )
    return "/".join(parts) if is_whole or not above else f"{above}/{redirect}"


def overlay_options(xattr_kind: XattrKind) -> tuple[tuple[str, str | None], ...]:
    if xattr_kind is XattrKind.USER:
        # The kernel follows no redirect that an agent could have set: renaming a folder of the view fails with EXDEV.
        return (*_OPTIONS, ("redirect_dir", "nofollow"), ("userxattr", None))
    return (*_OPTIONS, ("redirect_dir", "on"))


def _is_mounted(path: str) -> bool:
    try:
        return os.lstat(path).st_dev != os.lstat(os.path.dirname(path)).st_dev  # noqa: PTH120 - as everywhere here
    except FileNotFoundError:
        return False


def _unmount(path: str) -> None:
    if not _is_mounted(path):
        return
    try:
        unmount(path)
    except OSError as error:
        if error.errno != errno.EBUSY:
            raise
        raise Conflict(f"A process still works in {path}; stop it, then try again. Nothing was removed.") from error
