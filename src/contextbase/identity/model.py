"""Principals, their tokens, and the caller a request is made by."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from contextbase.errors import Forbidden, InvalidInput
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath

__all__ = [
    "LONGEST_TOKEN_LIFE",
    "Action",
    "Caller",
    "Principal",
    "PrincipalKind",
    "PrincipalName",
    "Token",
    "TokenRequest",
]

LONGEST_TOKEN_LIFE: Final = timedelta(days=3650)
_PRINCIPAL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


class PrincipalKind(StrEnum):
    USER = "user"
    AGENT = "agent"
    ADAPTER = "adapter"
    SYSTEM = "system"


class Action(StrEnum):
    """What a token may be used for; each stands alone."""

    READ = "read"
    WRITE = "write"
    ADMIN = "admin"  # manage projects, tokens and principals


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    id: PrincipalId
    kind: PrincipalKind
    name: str
    is_owner: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class PrincipalName:
    """How people name a principal: `agent:indexer`, or `indexer` where the kind does not matter."""

    name: str
    kind: PrincipalKind | None = None

    @classmethod
    def parse(cls, text: str) -> "PrincipalName":
        kind, colon, name = text.rpartition(":")
        if not _PRINCIPAL_NAME.fullmatch(name) or (colon and kind not in set(PrincipalKind)):
            raise InvalidInput(f"{text[:120]!r} names no principal; write such as agent:indexer or user:ann.")
        return cls(name=name, kind=PrincipalKind(kind) if colon else None)

    def __str__(self) -> str:
        return self.name if self.kind is None else f"{self.kind}:{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Token:
    """A token without its secret, which is shown once and never stored."""

    id: TokenId
    principal: Principal
    name: str
    actions: frozenset[Action]
    project_id: ProjectId | None  # None: every project the principal may use
    path_prefix: TreePath | None  # None: the whole tree
    created_at: datetime
    expires_at: datetime
    revoked_at: datetime | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRequest:
    """A token somebody asks for; checked when it is built."""

    principal_kind: PrincipalKind
    principal_name: str
    name: str
    actions: frozenset[Action]
    life: timedelta
    project_id: ProjectId | None = None
    path_prefix: TreePath | None = None

    def __post_init__(self) -> None:
        if not _PRINCIPAL_NAME.fullmatch(self.principal_name):
            raise InvalidInput(
                "A principal's name has 1 to 100 letters, digits or ._@- and starts with a letter or digit."
            )
        if not self.name.strip() or len(self.name.encode()) > 200 or not self.name.isprintable():
            raise InvalidInput("A token's name has 1 to 200 printable bytes.")
        if not self.actions:
            raise InvalidInput("A token needs at least one action: read, write or admin.")
        if not timedelta(0) < self.life <= LONGEST_TOKEN_LIFE:
            raise InvalidInput(f"A token lives more than 0 and at most {LONGEST_TOKEN_LIFE.days} days.")
        if self.path_prefix is not None and self.project_id is None:
            raise InvalidInput("A token for a path needs the project the path is in.")
        if self.path_prefix is not None and Action.ADMIN in self.actions:
            raise InvalidInput("A token for a path cannot allow 'admin': it could make itself a wider one.")
        if self.principal_kind is PrincipalKind.SYSTEM:
            raise InvalidInput("The system has no tokens; choose user, agent or adapter.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who makes a request, by which token, from where. Everything below the interfaces gets one."""

    principal: Principal
    token: Token
    origin: str = ""
    trace_id: str = ""

    def require(self, action: Action, project_id: ProjectId | None = None) -> None:
        """Raise `Forbidden` unless the token allows the action (for that project, or for all when None)."""
        if action not in self.token.actions:
            raise Forbidden(
                f"This token does not allow '{action}'; it allows: {', '.join(sorted(self.token.actions))}."
            )
        if self.token.project_id is not None and project_id != self.token.project_id:
            raise Forbidden("This token is for one project only, and not for this.")
