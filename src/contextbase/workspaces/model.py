"""Snapshots, workspaces and what was found in them."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final
from uuid import UUID

from contextbase.errors import InvalidSettings
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.vocabulary import FolderChangeKind, ScanProblem
from contextbase.workspaces.credentials import Credential
from contextbase.workspaces.ignore_rules import IgnoreRule
from contextbase.workspaces.place_paths import PlacePaths

__all__ = [
    "NOTHING_HELD",
    "DetectedChange",
    "FolderChangeKind",
    "FolderContent",
    "FolderMove",
    "HeldContents",
    "Ignored",
    "MirrorEntry",
    "MirrorSync",
    "NamedWorkspace",
    "Owner",
    "Quota",
    "Reported",
    "ScanLimits",
    "ScanProblem",
    "SnapshotKey",
    "View",
    "Workspace",
    "WorkspaceChanges",
    "WorkspaceId",
]


class WorkspaceId(UUID):
    """Its own id, not the agent's: an agent may have one in every project, and a new one after the old."""


@dataclass(frozen=True, slots=True)
class NamedWorkspace:
    """Whose workspace is meant. An agent has one at a time in each project."""

    project_id: ProjectId
    agent: str | None = None  # None: the caller
    id: WorkspaceId | None = field(default=None, kw_only=True)  # given: no other one, should it have ended


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotKey:
    project_id: ProjectId
    epoch: UUID  # a restore makes a new one: what was mirrored before is of another history
    seq: Seq


@dataclass(frozen=True, kw_only=True, slots=True)
class MirrorEntry:
    """How a path differs between two snapshots; `kind` is deleted when nothing stands there any more."""

    path: TreePath
    kind: Kind
    content_hash: ContentHash | None = None  # of a file's bytes or a link's target
    size: int = 0
    executable: bool = False
    changed_at: int = 0  # the commit's time, in ns since 1970
    existed: bool = False  # a node stood there in the older snapshot, too


@dataclass(frozen=True, kw_only=True, slots=True)
class View:
    """A snapshot, or a folder of it, as one principal may see it. Paths are the folder's own."""

    snapshot: SnapshotKey
    masked: frozenset[TreePath] = frozenset()  # the topmost paths that are hidden
    folder: TreePath | None = None  # what is shown as the top; None: the project's own top

    @property
    def paths(self) -> PlacePaths:
        return PlacePaths(self.folder)

    @property
    def masked_in_project(self) -> frozenset[TreePath]:
        return frozenset(map(self.paths.in_project, self.masked))

    def within(self, folder: TreePath | None) -> "View":
        """The same of one of its folders. One that is hidden shows nothing."""
        paths = PlacePaths(folder)
        below = frozenset(path for place in self.masked if (path := paths.in_folder(place)) is not None)
        return replace(self, masked=below, folder=folder)

    def hides(self, path: TreePath) -> bool:
        place: TreePath | None = path if self.masked else None
        while place is not None and place not in self.masked:
            place = place.parent
        return place is not None


_AGENTS_OF_ROOT: Final = 61_184
"""An account nobody has: systemd and Debian give out none of this number."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Owner:
    """The account that layers and workspaces belong to, and that agents run as."""

    uid: int
    gid: int

    @classmethod
    def of_this_process(cls) -> "Owner":
        return cls(uid=os.geteuid(), gid=os.getegid())

    @classmethod
    def of_agents(cls, uid: int | None) -> "Owner":
        """`uid` is what the settings ask for. Never root: what breaks out of a sandbox would be root outside. But for
        the root of a user namespace that has no such account: outside that is somebody else."""
        own = cls.of_this_process()
        if own.uid == 0 and (uid is not None or _has_account(_AGENTS_OF_ROOT)):
            wanted = uid or _AGENTS_OF_ROOT
            return cls(uid=wanted, gid=wanted)
        if uid not in (None, own.uid):
            raise InvalidSettings(
                f"The setting 'agent_uid' is {uid}, but only root can give folders to an account other than its own."
            )
        return own


def _has_account(uid: int) -> bool:
    """Whether files can belong to this number in the user namespace of this process."""
    try:
        ranges = Path("/proc/self/uid_map").read_text(encoding="ascii").splitlines()
    except FileNotFoundError:
        return True
    return any(int(first) <= uid < int(first) + int(count) for first, _, count in map(str.split, ranges))


@dataclass(frozen=True, kw_only=True, slots=True)
class Workspace:
    id: WorkspaceId
    view: View
    path: Path  # where the agent works


@dataclass(frozen=True, kw_only=True, slots=True)
class MirrorSync:
    synced: int  # entries written to this machine now
    skipped: int  # entries that were here already
    total: int  # entries of the snapshot


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderContent:
    """What stands at a path now."""

    kind: Kind
    hash: ContentHash | None = None  # None: a directory
    size: int = 0
    executable: bool = False


HeldContents = Mapping[TreePath, FolderContent | None]
"""What the folder had, by path, when it was last as the project had it. Such a file is never ignored."""
NOTHING_HELD: Final[HeldContents] = MappingProxyType({})


@dataclass(frozen=True, kw_only=True, slots=True)
class DetectedChange:
    """What an agent did to one path, against the view it was given; a path has one change at most.

    A directory is named when it is created empty or became empty, for nothing else in the tree shows it, and always
    when it is gone: it may have been a node.
    """

    kind: FolderChangeKind
    path: TreePath
    before: Kind | None  # what stood there in the view
    content: FolderContent | None  # None: it is gone
    renamed_from: TreePath | None = None
    layer_file: str | None = None  # a mirror layer's file that holds the content; None: it is in the work folder


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderMove:
    """A folder of the view that stands somewhere else now, and nowhere else."""

    source: TreePath
    target: TreePath


@dataclass(frozen=True, kw_only=True, slots=True)
class Reported:
    """Something that cannot be committed as it is. It stays in the folder, and the path is as it was in the tree."""

    name: bytes  # the path as the file system has it
    problem: ScanProblem
    reason: str  # a sentence for the agent


@dataclass(frozen=True, kw_only=True, slots=True)
class Ignored:
    """A new file or folder that an ignore rule took out."""

    path: str  # a folder ends in '/'
    rule: IgnoreRule


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceChanges:
    view: View  # what they are measured against
    changes: tuple[DetectedChange, ...]  # in path order
    reported: tuple[Reported, ...]
    ignored: tuple[Ignored, ...]  # the topmost only
    notes: tuple[str, ...] = ()  # sentences for whoever asked
    suspects: Mapping[TreePath, Credential] = field(default_factory=dict)  # of the changes: files new or changed
    moved: tuple[FolderMove, ...] = ()  # their files are among the changes, one by one
    filled: frozenset[TreePath] = frozenset()  # of the held paths those that are folders with something in them


@dataclass(frozen=True, kw_only=True, slots=True)
class ScanLimits:
    largest_file: int = 5 << 30
    tries: int = 3  # to read a file that is being written
    pause: float = 0.05  # seconds between them


@dataclass(frozen=True, kw_only=True, slots=True)
class Quota:
    """What one workspace may bring. Looked at when it is committed; where the file system can, it holds it before."""

    bytes: int = 10 << 30
    files: int = 200_000
