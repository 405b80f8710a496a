"""What a sandbox remembers, tells and answers."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from pathlib import Path

from contextbase.ids import ContentHash, TreePath
from contextbase.merge import EntryKind

__all__ = [
    "CopyResult",
    "FileRecord",
    "FileResult",
    "KeptVersion",
    "Listener",
    "SandboxEvent",
    "SandboxEventKind",
    "StandaloneInfo",
    "StandaloneState",
    "StandaloneStats",
    "SyncOutcome",
    "SyncResult",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class FileRecord:
    """A file or link at one moment."""

    kind: EntryKind
    content: ContentHash  # a link's target for a link
    mode: int  # permission bits; 0 for a link


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptVersion:
    """A worker's version that conflicted."""

    content: ContentHash | None  # None: the worker had deleted it
    at: str  # where it is kept, below the base folder; '' for a deletion


@dataclass(frozen=True, kw_only=True, slots=True)
class CopyResult:
    copied: tuple[TreePath, ...]
    left_out: dict[str, str]  # by name: what cannot be copied, and why


class SyncOutcome(StrEnum):
    SUCCESS = "success"  # the base folder has the worker's version
    MERGED = "merged"  # the base folder has the worker's changes and those of others
    CONFLICT = "conflict"  # the base folder is as it was; the worker's version is kept beside it
    FAILED = "failed"  # the base folder is as it was; the worker's version is in the sandbox alone


@dataclass(frozen=True, kw_only=True, slots=True)
class FileResult:
    path: str
    outcome: SyncOutcome
    action: str = ""  # written, deleted, unchanged: what was done to the base folder
    reason: str = ""
    kept_at: str = ""  # below the base folder


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncResult:
    files: tuple[FileResult, ...]

    @property
    def success(self) -> tuple[FileResult, ...]:
        return self._with(SyncOutcome.SUCCESS)

    @property
    def merged(self) -> tuple[FileResult, ...]:
        return self._with(SyncOutcome.MERGED)

    @property
    def conflicts(self) -> tuple[FileResult, ...]:
        return self._with(SyncOutcome.CONFLICT)

    @property
    def failed(self) -> tuple[FileResult, ...]:
        return self._with(SyncOutcome.FAILED)

    @property
    def is_complete(self) -> bool:
        """Whether all the worker did is in the base folder."""
        return not self.conflicts and not self.failed

    def _with(self, outcome: SyncOutcome) -> tuple[FileResult, ...]:
        return tuple(file for file in self.files if file.outcome is outcome)


class SandboxEventKind(StrEnum):
    SETUP = "setup"
    COPY = "copy"
    SYNC = "sync"
    CONFLICT = "conflict"
    CLEANUP = "cleanup"


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxEvent:
    kind: SandboxEventKind
    worker_id: str
    task_id: str
    path: str = ""  # of a copy, sync or conflict: the file
    outcome: SyncOutcome | None = None  # of a sync


Listener = Callable[[SandboxEvent], None]
"""Called where the sandbox is used, after the fact; what it raises, the caller of the sandbox gets."""


@dataclass(frozen=True, kw_only=True, slots=True)
class StandaloneStats:
    """Since the sandbox was set up, over all its syncs."""

    copied: int  # files and links in the sandbox's record
    copied_bytes: int
    syncs: int
    succeeded: int
    merged: int
    conflicts: int
    failed: int


class StandaloneState(StrEnum):
    IN_USE = "in-use"  # a process has it now
    IDLE = "idle"  # nobody has it; a worker of that name and task can go on
    FINISHED = "finished"  # it may go
    BROKEN = "broken"  # its metadata cannot be read


@dataclass(frozen=True, kw_only=True, slots=True)
class StandaloneInfo:
    worker_id: str
    state: StandaloneState
    path: Path
    task_id: str = ""
    base_dir: str = ""
    files: int = 0
    created_at: datetime | None = None
