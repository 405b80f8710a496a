"""What the audit trail records."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final
from uuid import UUID

from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TokenId, TreePath
from contextbase.vocabulary import WayIn

__all__ = ["SYSTEM_CHAIN", "Actor", "AuditEntry", "ChainHead", "WayIn"]

SYSTEM_CHAIN: Final = UUID(int=0)


@dataclass(frozen=True, kw_only=True, slots=True)
class Actor:
    """Who acted, by what right, and from where."""

    way_in: WayIn
    principal_id: PrincipalId
    grant: str  # where the right to do it came from, such as "token" or "chore"
    token_id: TokenId | None = None
    on_behalf_of: PrincipalId | None = None  # who asked for it, if somebody else did
    origin: str = ""  # client address or machine
    trace_id: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    at: datetime  # kept to the millisecond
    by: Actor
    action: str  # such as "token.create"
    summary: str  # one sentence for people
    path: TreePath | None = None  # as it was then
    node_id: NodeId | None = None
    base_seq: Seq | None = None
    seq: Seq | None = None
    old_hash: ContentHash | None = None
    new_hash: ContentHash | None = None
    strategy: str | None = None
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainHead:
    """Where a chain ends."""

    chain: UUID
    number: int
    mac: bytes
