"""Providers of workspaces for tests, upon snapshots in memory; every mount is taken down again."""

import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from uuid import uuid4

from tests.support.require import require_root
from tests.support.snapshots import FOLDER, Link, MemorySnapshots, Node, Script, Tree

from contextbase.ids import TreePath
from contextbase.workspaces.copies import CopyBackend
from contextbase.workspaces.mirror import Mirror
from contextbase.workspaces.mirrors import Mirrors
from contextbase.workspaces.model import (
    DetectedChange,
    FolderChangeKind,
    Owner,
    Quota,
    ScanLimits,
    View,
    Workspace,
    WorkspaceChanges,
    WorkspaceId,
)
from contextbase.workspaces.overlay import OverlayBackend, XattrKind
from contextbase.workspaces.ports import FolderBackend
from contextbase.workspaces.quotas import open_quotas
from contextbase.workspaces.syscalls import unmount

__all__ = [
    "PROVIDERS",
    "Site",
    "described",
    "mounts_below",
    "new_site",
    "open_site",
    "read_tree",
    "shown",
    "unmount_all",
]

PROVIDERS = ("overlay", "copy")
QUICK = ScanLimits(pause=0.001)


@dataclass
class Site:
    """A machine's workspaces."""

    root: Path
    snapshots: MemorySnapshots
    mirrors: Mirrors
    provider: FolderBackend
    folder: TreePath | None = None  # of the project, that workspaces are made of

    @property
    def mirror(self) -> Mirror:
        return self.mirrors.of(self.snapshots.head)

    async def create(self, *, seq: int | None = None, masked: tuple[str, ...] = ()) -> Workspace:
        snapshot = self.snapshots.head if seq is None else self.snapshots.key(seq)
        view = View(snapshot=snapshot, masked=frozenset(TreePath(path) for path in masked), folder=self.folder)
        return await self.provider.create_workspace(WorkspaceId(int=uuid4().int), view)

    async def detect(self, workspace: Workspace) -> WorkspaceChanges:
        return await self.provider.detect_changes(workspace.id)

    async def changes(self, workspace: Workspace) -> set[str]:
        """What was found, in short; fails when something was reported."""
        found = await self.detect(workspace)
        assert not found.reported
        return {described(change) for change in found.changes}


def described(change: DetectedChange) -> str:
    """As `created a.txt`, `renamed old -> new`, `modified a (symlink)`."""
    kind = change.content.kind if change.content else change.before
    suffix = "" if kind == "file" else f" ({kind})"
    if change.kind is FolderChangeKind.RENAMED:
        return f"renamed {change.renamed_from} -> {change.path}"
    return f"{change.kind} {change.path}{suffix}"


@asynccontextmanager
async def open_site(
    root: Path,
    kind: str,
    *,
    snapshots: MemorySnapshots | None = None,
    limits: ScanLimits = QUICK,
    quota: Quota | None = None,
) -> AsyncIterator[Site]:
    if kind != "copy":
        require_root()
    snapshots = snapshots or MemorySnapshots()
    try:
        yield new_site(root, kind, snapshots, limits, quota)
    finally:
        unmount_all(root)


def new_site(
    root: Path, kind: str, snapshots: MemorySnapshots, limits: ScanLimits = QUICK, quota: Quota | None = None
) -> Site:
    """With quotas where the file system has them."""
    root.mkdir(mode=0o711, parents=True, exist_ok=True)
    mirrors = Mirrors(root, snapshots, owner=Owner.of_agents(None))
    make = {
        "overlay": OverlayBackend,
        "overlay by user": partial(OverlayBackend, xattr_kind=XattrKind.USER),
        "copy": CopyBackend,
    }[kind]
    provider: FolderBackend = make(root, mirrors, limits=limits, quotas=open_quotas(root, quota or Quota()))
    return Site(root=root, snapshots=snapshots, mirrors=mirrors, provider=provider)


def mounts_below(root: Path) -> list[str]:
    lines = Path("/proc/self/mountinfo").read_text(encoding="utf-8").splitlines()
    paths = [line.split()[4].encode().decode("unicode_escape") for line in lines]
    return [path for path in paths if path.startswith(f"{root}/")]


def unmount_all(root: Path) -> None:
    """Take down what is mounted below a test's own folder, and nothing else."""
    for path in reversed(mounts_below(root)):
        unmount(path)


def read_tree(folder: Path) -> Tree:
    """A folder as a tree: files, links and empty folders."""
    tree: Tree = {}
    for parent, folders, files in os.walk(folder):
        for name in [*folders, *files]:
            path = Path(parent) / name
            node = _node_at(path)
            if node is not None:
                tree[str(path.relative_to(folder))] = node
    return tree


def _node_at(path: Path) -> Node | None:
    status = path.lstat()
    if stat.S_ISLNK(status.st_mode):
        return Link(os.readlink(path))  # noqa: PTH115 - a Path would respell the target
    if stat.S_ISDIR(status.st_mode):
        return None if any(path.iterdir()) else FOLDER
    content = path.read_bytes()
    return Script(content) if status.st_mode & stat.S_IXUSR else content


def shown(tree: Tree) -> Tree:
    """What a folder made from a snapshot's tree looks like: a folder that is not empty needs no node."""
    return {
        path: node
        for path, node in tree.items()
        if node is not FOLDER or not any(other.startswith(f"{path}/") for other in tree)
    }
