"""What the audit trail records."""

from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Final
from uuid import UUID

from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TokenId, TreePath

__all__ = ["SYSTEM_CHAIN", "Actor", "AuditEntry", "ChainHead", "WayIn"]

SYSTEM_CHAIN: Final = UUID(int=0)


class WayIn(StrEnum):
    """How somebody came in. It is decided when the caller is authenticated, never from a request's body.

    Rows and answers call it `operator_type`."""

    WEB_UI = "web_ui"  # a person, in a browser
    AGENT = "agent"  # an agent in one of our workspaces or sandboxes
    EXTERNAL_AGENT = "external_agent"  # an agent that calls from outside
    SAAS_ADAPTER = "saas_adapter"
    API = "api"  # a person's program, or the command line
    SYSTEM = "system"  # the server itself


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
