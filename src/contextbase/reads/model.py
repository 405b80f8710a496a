"""What reads answer: entries of a snapshot, versions, what was set aside, and contents."""

from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.audit.model import WayIn
from contextbase.identity.model import PrincipalKind
from contextbase.ids import ContentHash, NodeId, Seq, TreePath
from contextbase.storage.model import Kind, Version

__all__ = ["Checkout", "CommitAuthor", "SideVersionEntry", "SnapshotEntry", "StoredContent", "VersionEntry"]

# Quicker than to call the types, for thousands of rows.
_PRINCIPAL_KINDS: Final = {kind.value: kind for kind in PrincipalKind}
_WAYS_IN: Final = {kind.value: kind for kind in WayIn}


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotEntry:
    path: TreePath
    kind: Kind
    version: Version | None  # None: a folder that only its contents imply
    content: bytes | None = None  # if it was asked for and there was room


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkout:
    epoch: UUID
    seq: Seq  # the snapshot that was read: the base of what is made from it
    entries: tuple[SnapshotEntry, ...]
    missing: tuple[TreePath, ...] = ()  # of the paths asked for
    next_after: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitAuthor:
    """Who made a commit, by which way in, when, and what they said about it."""

    kind: PrincipalKind
    name: str
    way_in: WayIn
    message: str  # empty for who may not see all of the commit
    at: datetime

    @property
    def principal(self) -> str:
        return f"{self.kind}:{self.name}"

    @classmethod
    def of_row(cls, row: asyncpg.Record) -> "CommitAuthor":
        return cls(
            kind=_PRINCIPAL_KINDS[row["principal_kind"]],
            name=row["principal_name"],
            way_in=_WAYS_IN[row["operator_type"]],
            message=row["message"],
            at=row["committed_at"],
        )

    def told(self, *, message: bool) -> "CommitAuthor":
        """With the message, or without it."""
        return self if message else replace(self, message="")


@dataclass(frozen=True, kw_only=True, slots=True)
class VersionEntry:
    version: Version
    author: CommitAuthor


@dataclass(frozen=True, kw_only=True, slots=True)
class SideVersionEntry:
    id: UUID
    seq: Seq
    node_id: NodeId
    path: TreePath
    reason: str  # superseded, or in_review
    kind: Kind
    content_hash: ContentHash | None
    size: int
    base_number: int | None
    review_id: UUID | None
    review_state: str | None
    author: CommitAuthor


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredContent:
    """Bytes that the caller may read, by name."""

    path: TreePath
    hash: ContentHash
    size: int
    mime: str
