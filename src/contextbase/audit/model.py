"""What the audit trail records."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TokenId, TreePath

__all__ = ["SYSTEM_CHAIN", "AuditEntry", "ChainHead", "OperatorType"]

SYSTEM_CHAIN: Final = UUID(int=0)


class OperatorType(StrEnum):
    """The way in by which somebody acted; it comes from the token and the route, never from a request's body."""

    WEB_UI = "web_ui"
    AGENT = "agent"
    EXTERNAL_AGENT = "external_agent"
    SAAS_ADAPTER = "saas_adapter"
    API = "api"
    SYSTEM = "system"


@dataclass(frozen=True, kw_only=True, slots=True)
class AuditEntry:
    at: datetime  # kept to the millisecond
    operator_type: OperatorType
    principal_id: PrincipalId
    action: str  # such as "token.create"
    summary: str  # one sentence for people
    token_id: TokenId | None = None
    path: TreePath | None = None  # as it was then
    node_id: NodeId | None = None
    base_seq: Seq | None = None
    seq: Seq | None = None
    old_hash: ContentHash | None = None
    new_hash: ContentHash | None = None
    strategy: str | None = None
    origin: str = ""  # client address or node
    trace_id: str = ""
    details: dict[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChainHead:
    """Where a chain ends."""

    chain: UUID
    number: int
    mac: bytes
