"""Workspaces as plain copies, for machines without overlay mounts: blocks are shared where the file system can.

<root>/copy/<id>/manifest.json  what each file looked like when it was given
<root>/workspaces/<id>          the copy
<root>/closed/<id>              the copy while it is closed: nobody finds it there
"""

import json
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final, Self

from contextbase.data_folder import write_private
from contextbase.durable import explained
from contextbase.errors import Conflict, NotFound
from contextbase.ids import TreePath
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.folder import unshut
from contextbase.workspaces.folder_scan import NO_TRACES
from contextbase.workspaces.layer_view import LayerView, ViewEntry
from contextbase.workspaces.local_backend import LocalBackend
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import (
    HeldContents,
    Owner,
    ScanLimits,
    View,
    Workspace,
    WorkspaceChanges,
    WorkspaceId,
)
from contextbase.workspaces.occupancy import is_occupied
from contextbase.workspaces.pins import Stack
from contextbase.workspaces.quotas import ProjectQuotas
from contextbase.workspaces.strays import keep_strays
from contextbase.workspaces.syscalls import Rename, copy_content, file_handle, rename, sync_filesystem
from contextbase.workspaces.traces import FolderTrace

__all__ = ["CopyBackend"]

_MANIFEST: Final = "manifest.json"
_TICK: Final = 20_000_000
"""Nanoseconds within which a file system may give two changes the same time."""


class CopyBackend(LocalBackend):
    name = "copy"

    def __init__(
        self, root: Path, mirrors: Mirrors, *, limits: ScanLimits | None = None, quotas: ProjectQuotas | None = None
    ) -> None:
        kept = (self.name, "closed")
        super().__init__(root, mirrors, kept=kept, traces=NO_TRACES, limits=limits, quotas=quotas)

    async def create_workspace(self, workspace_id: WorkspaceId, view: View) -> Workspace:
        mirror = self._mirrors.of(view.snapshot)
        await in_thread(self._places.reserve, workspace_id)
        stack = await mirror.pin(str(workspace_id), view)
        await in_thread(self._create, workspace_id, stack)
        return Workspace(id=workspace_id, view=view, path=Path(self._places.path(workspace_id)))

    async def open_workspace(self, workspace_id: WorkspaceId) -> Workspace:
        workspace, stack = await in_thread(self._read, workspace_id)
        await self._mirrors.of(workspace.view.snapshot).pinned_again(str(workspace_id), stack)
        await in_thread(self._show, workspace_id)
        return workspace

    async def is_open(self, workspace_id: WorkspaceId) -> bool:
        return await in_thread(self._is_open, workspace_id)

    async def open_view(self, view: View) -> Path:
        path = self._places.view(view)
        if not path.is_dir():
            stack = await self._mirrors.of(view.snapshot).pin(path.name, view)
            await in_thread(self._copy_view, path, stack)
        return path

    async def close_other_views(self, kept: Collection[View]) -> None:
        for path in await in_thread(self._places.views_but, kept):
            await in_thread(self._close_view, path)

    def _create(self, workspace_id: WorkspaceId, stack: Stack) -> None:
        path = Path(self._places.path(workspace_id))
        with explained(self._places.root):
            path.mkdir(mode=0o755)
            if self._quotas is not None:
                self._quotas.gather(str(path))
            self._places.hand_over(str(path))
            _copy(stack, path, owner=self._mirrors.owner)
            manifest = _Manifest.of(path, LayerView(stack.shown))
            _sync(path)  # a file that a power cut emptied must not look like one the agent emptied
            if self._quotas is not None:
                self._quotas.limit(str(path))
            manifest.write(self._manifest(workspace_id))

    def _manifest(self, workspace_id: WorkspaceId) -> Path:
        """Written last: without it the copy was never finished, and no agent was in it."""
        return Path(self._places.kept(workspace_id)[0], _MANIFEST)

    def _read(self, workspace_id: WorkspaceId) -> tuple[Workspace, Stack]:
        self._check_finished(workspace_id)
        return self._places.read(workspace_id)

    def _check_finished(self, workspace_id: WorkspaceId) -> None:
        if not self._manifest(workspace_id).is_file():
            raise NotFound(f"There is no workspace {workspace_id} on this machine.")

    def _detect(self, workspace_id: WorkspaceId, held: HeldContents, reads_gitignore: bool) -> WorkspaceChanges:
        self._check_finished(workspace_id)
        return super()._detect(workspace_id, held, reads_gitignore)

    def _traces_of(self, workspace_id: WorkspaceId) -> "_Manifest":
        return _Manifest.read(self._manifest(workspace_id))

    def _is_open(self, workspace_id: WorkspaceId) -> bool:
        return Path(self._places.path(workspace_id)).is_dir() and not Path(self._closed(workspace_id)).is_dir()

    def _closed(self, workspace_id: WorkspaceId) -> str:
        return self._places.kept(workspace_id)[1]

    def _work_folder(self, workspace_id: WorkspaceId) -> Path:
        closed = Path(self._closed(workspace_id))
        return closed if closed.is_dir() else Path(self._places.path(workspace_id))

    def _close(self, workspace_id: WorkspaceId) -> None:
        """Moved away, so that nobody comes in any more; then it can be told whether anybody is left in it."""
        path, closed = self._places.path(workspace_id), self._closed(workspace_id)
        with explained(self._places.root), self._places.locked(workspace_id):
            try:
                _move(path, closed)
            except FileNotFoundError:
                return
            except FileExistsError:
                keep_strays(path, work=Path(closed), owner=self._mirrors.owner)
                return
            if is_occupied(closed):
                self._move_back(workspace_id)
                raise Conflict(f"A process still works in {path}; stop it, then try again. Nothing was removed.")

    def _show(self, workspace_id: WorkspaceId) -> None:
        with explained(self._places.root), self._places.locked(workspace_id):
            if Path(self._closed(workspace_id)).is_dir():
                self._move_back(workspace_id)

    def _move_back(self, workspace_id: WorkspaceId) -> None:
        path, closed = self._places.path(workspace_id), self._closed(workspace_id)
        keep_strays(path, work=Path(closed), owner=self._mirrors.owner)
        rename(closed, path, Rename.NOREPLACE)

    def _cleanup(self, workspace_id: WorkspaceId) -> None:
        self._close(workspace_id)
        with explained(self._places.root), self._places.locked(workspace_id):
            self._places.remove(workspace_id)

    def _remove_unfinished(self, workspace_id: WorkspaceId) -> bool:
        if self._manifest(workspace_id).is_file():
            return False
        self._cleanup(workspace_id)
        return True

    def _close_view(self, path: Path) -> None:
        with explained(self._places.root), self._places.views_locked():
            self._places.remove_view(path)

    def _copy_view(self, path: Path, stack: Stack) -> None:
        with explained(self._places.root), self._places.views_locked():
            if path.is_dir():
                return  # another was quicker
            draft = self._places.draft_of_view(path)
            draft.mkdir(mode=0o755)
            _copy(stack, draft, owner=self._mirrors.owner, read_only=True)
            draft.rename(path)


class _Manifest:
    """What `Traces` are for a copy: each file's status when it was given."""

    def __init__(
        self,
        files: dict[str, tuple[int, ...]],
        handles: dict[str, str],
        folders: dict[str, str],
        taken_at: int,
    ) -> None:
        self._files = files
        self._handles = handles  # of files and links, by path
        self._folders = folders  # paths by handle
        self._taken_at = taken_at  # the file system's own time

    @classmethod
    def of(cls, root: Path, view: LayerView) -> Self:
        files: dict[str, tuple[int, ...]] = {}
        handles: dict[str, str] = {}
        folders: dict[str, str] = {}
        newest = 0
        for path, kind in view.below(""):
            handle = file_handle(os.fsencode(root / path))
            if kind is Kind.DIRECTORY:
                if handle is not None:
                    folders[handle.hex()] = path
                continue
            status = (root / path).lstat()
            files[path] = _signature(status)
            newest = max(newest, status.st_ctime_ns)
            if handle is not None:
                handles[path] = handle.hex()
        return cls(files, handles, folders, newest)

    def write(self, file: Path) -> None:
        """Durably: a copy without it counts as never finished, and would be removed."""
        written = {
            "files": self._files,
            "handles": self._handles,
            "folders": self._folders,
            "taken_at": self._taken_at,
        }
        write_private(file, json.dumps(written))

    @classmethod
    def read(cls, file: Path) -> Self:
        written = json.loads(file.read_text(encoding="utf-8"))
        files = {path: tuple(signature) for path, signature in written["files"].items()}
        return cls(files, written["handles"], written.get("folders", {}), written["taken_at"])  # older ones have none

    def trace_of(self, folder: int, path: str, above: str | None) -> FolderTrace:  # noqa: ARG002 - a copy has all of it
        handle = file_handle(folder) if path else None
        return FolderTrace(was=self._folders.get(handle.hex()) if handle is not None else None if path else "")

    def is_whiteout(self, status: os.stat_result) -> bool:  # noqa: ARG002 - nothing lies below
        return False

    def is_untouched(self, path: str, status: os.stat_result) -> bool:
        """A change in the same tick as ours would not show, so the last files we wrote are always read."""
        return self._files.get(path) == _signature(status) and status.st_ctime_ns < self._taken_at - _TICK

    def origin_of(self, descriptor: int) -> bytes | None:
        return file_handle(descriptor)

    def origin_of_link(self, folder: int, name: str) -> bytes | None:
        return file_handle(os.fsencode(f"/proc/self/fd/{folder}/{name}"))

    def identity_in_view(self, path: TreePath, entry: ViewEntry) -> bytes | None:  # noqa: ARG002 - as it was given
        handle = self._handles.get(path)
        return bytes.fromhex(handle) if handle is not None else None


def _copy(stack: Stack, target: Path, *, owner: Owner, read_only: bool = False) -> None:
    view = LayerView(stack.shown)
    chown = owner != Owner.of_this_process()
    folders = [target]
    for path, kind in view.below(""):
        place = target / path
        if kind is Kind.DIRECTORY:
            place.mkdir(mode=0o755)
            folders.append(place)
        else:
            entry = view.entry(path)
            assert entry is not None, "layers do not change"  # noqa: S101 - for the type checker
            source = Path(entry.file)
            if kind is Kind.SYMLINK:
                os.symlink(os.readlink(source), place)  # noqa: PTH115, PTH211 - a Path would respell the target
            else:
                _copy_file(source, place)
                if read_only:
                    place.chmod(place.stat().st_mode & 0o555)
            status = source.lstat()
            os.utime(place, ns=(status.st_mtime_ns, status.st_mtime_ns), follow_symlinks=False)
        if chown:
            os.chown(place, owner.uid, owner.gid, follow_symlinks=False)
    for folder in reversed(folders):
        if read_only:
            folder.chmod(0o555)


def _copy_file(source: Path, target: Path) -> None:
    with source.open("rb") as read, target.open("xb") as written:
        copy_content(read.fileno(), written.fileno())
        os.fchmod(written.fileno(), os.fstat(read.fileno()).st_mode & 0o777)


def _move(folder: str, target: str) -> None:
    try:
        rename(folder, target, Rename.NOREPLACE)
    except PermissionError:  # the agent, of the same account, took the right to change it
        unshut(folder)
        rename(folder, target, Rename.NOREPLACE)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        sync_filesystem(descriptor)
    finally:
        os.close(descriptor)


def _signature(status: os.stat_result) -> tuple[int, ...]:
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns, status.st_ino, status.st_mode
