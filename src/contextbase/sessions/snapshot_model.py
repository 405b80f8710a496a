"""Session snapshots as values."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import NewType
from uuid import UUID

from contextbase.ids import ContentHash, ProjectId, Seq
from contextbase.sessions.model import RunId, SessionId
from contextbase.storage.model import Kind

__all__ = ["SessionFile", "SessionSnapshot", "SnapshotId", "SnapshotReason", "StoredPiece"]

SnapshotId = NewType("SnapshotId", UUID)


class SnapshotReason(StrEnum):
    """Why a snapshot was taken, by the names of seed 002."""

    MESSAGE_STOP = "message.stop"  # somebody stopped the agent
    RUN_FINISHED = "run.finished"
    PRE_STOP = "pre.stop"
    PRE_REMOVE = "pre.remove"
    PERIODIC = "periodic"  # every few minutes while a run works
    PARKED = "parked"  # its run waits for a person
    CATCH_UP = "catch_up"
    PRE_DISCARD = "pre.discard"  # with the work that its owner throws away
    DISCARDED = "discarded"
    PRE_REWIND = "pre.rewind"  # with what the rewind takes back
    REWOUND = "rewound"


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredPiece:
    hash: ContentHash
    size: int


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionFile:
    """An entry of a snapshot. A file that only grows is stored in pieces, so that each turn costs what it added."""

    name: bytes  # as the file system has it: no project would take some of these
    kind: Kind  # DELETED: the project has it, and the session's work removed it
    pieces: tuple[StoredPiece, ...] = ()  # of a file's bytes, or a link's target
    executable: bool = False
    base: Seq | None = None  # of work that is not committed: the snapshot it was made from; None: the session's own

    @property
    def size(self) -> int:
        return sum(piece.size for piece in self.pieces)


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionSnapshot:
    id: SnapshotId
    session_id: SessionId
    run_id: RunId | None  # the run that it was taken in or after
    message_id: str | None
    project_id: ProjectId
    epoch: UUID
    base: Seq  # the project's snapshot that the folder showed
    reason: SnapshotReason
    files: int
    bytes: int
    sdk_session_ids: Mapping[str, str] = field(default_factory=dict)
    created_at: datetime | None = None  # set by the database
