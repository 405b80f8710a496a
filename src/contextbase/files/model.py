"""What the file service answers: entries, details, what was done, and the sums of a place."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Final
from uuid import UUID

from contextbase.gate.model import Expectation, check_message_id
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.vocabulary import FileAction

__all__ = [
    "EXTERNAL",
    "FileAction",
    "FileDetails",
    "FileEntry",
    "FileOperation",
    "FilePage",
    "HistoryPage",
    "OperationContext",
    "OperationResult",
    "OperationStatus",
    "PlaceInfo",
    "PlaceSyncResult",
    "PlaceUsage",
    "moment",
]

EXTERNAL: Final = "external"
"""The operator of what programs did in a workspace behind our back."""


_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


def moment(nanoseconds: int) -> datetime | None:
    """Since 1970; 0: nobody knows."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000) if nanoseconds else None


@dataclass(frozen=True, kw_only=True, slots=True)
class FileEntry:
    """The basic tier: what navigation needs."""

    path: TreePath
    kind: Kind
    size: int
    modified_at: datetime | None  # None: an empty folder of which nobody noted it
    mime: str


@dataclass(frozen=True, kw_only=True, slots=True)
class FileDetails:
    """The second tier: one file."""

    entry: FileEntry
    hash: ContentHash | None  # None: a folder
    executable: bool = False
    seq: Seq | None = None  # the commit that made this version; None: a file in a workspace
    version: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FilePage:
    entries: tuple[FileEntry, ...]
    next_after: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationContext:
    """What comes with an operation, whichever it is."""

    message_id: str | None = None  # of the conversation's message that asked for it
    expects: Expectation | None = None  # of the file at the path; else nothing is done

    def __post_init__(self) -> None:
        check_message_id(self.message_id)


class OperationStatus(StrEnum):
    """What became of an operation that was not refused."""

    WRITTEN = "written"
    UNCHANGED = "unchanged"  # it was so already
    MERGED = "merged"  # of a project: with what others wrote meanwhile
    SUPERSEDED = "superseded"  # of a project: the policy prefers what stands there; this is kept beside it
    IN_REVIEW = "in_review"  # of a project: a person decides


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationResult:
    action: FileAction
    path: TreePath
    status: OperationStatus = OperationStatus.WRITTEN
    previous_path: TreePath | None = None
    old_hash: ContentHash | None = None
    new_hash: ContentHash | None = None
    size: int = 0
    mime: str = ""
    seq: Seq | None = None  # the commit; None: it is in a workspace
    review_id: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class FileOperation:
    """One row of a place's history."""

    cursor: str  # pass it on to read what came before
    at: datetime
    action: FileAction
    path: TreePath | None  # None: a sync, of the whole place
    previous_path: TreePath | None
    kind: Kind  # what stands at the path since; deleted: nothing
    old_hash: ContentHash | None
    new_hash: ContentHash | None
    size: int
    operator_type: str  # a way in, or `external`
    principal: str  # kind:name
    message_id: str | None
    origin: str  # '' for who may not see where requests come from
    seq: Seq | None = None  # of the commit, in a project


@dataclass(frozen=True, kw_only=True, slots=True)
class HistoryPage:
    operations: tuple[FileOperation, ...]
    next_before: str | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaceSyncResult:
    at: datetime | None  # None: a project without a commit
    registered: tuple[OperationResult, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaceInfo:
    files: int
    folders: int
    disk_usage: int
    last_modified: datetime | None
    last_sync: datetime | None


@dataclass(frozen=True, kw_only=True, slots=True)
class PlaceUsage:
    disk_usage: int  # bytes of all files
    uncommitted_bytes: int = 0  # of a workspace: in files that are not as they were given
    uncommitted_files: int = 0
    most_bytes: int | None = None  # that a workspace may bring; None: a project has no limit of its own
    most_files: int | None = None
