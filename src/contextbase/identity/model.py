"""Principals, their tokens, and the caller a request is made by."""

import re
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Final

from contextbase.errors import Forbidden, InvalidInput
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath

__all__ = [
    "DEFAULT_TOKEN_LIFE",
    "LONGEST_TOKEN_LIFE",
    "Action",
    "Caller",
    "Principal",
    "PrincipalKind",
    "PrincipalName",
    "Token",
    "TokenRequest",
]

DEFAULT_TOKEN_LIFE: Final = timedelta(days=90)
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

    def may_manage(self, other: "Token") -> bool:
        """Whether an administrator with this token may list and revoke the other one: all tokens, or those of the one
        project this token is limited to. The owner's tokens are the owner's alone."""
        is_within = self.project_id in (None, other.project_id)
        return is_within and (self.principal.is_owner or not other.principal.is_owner)


@dataclass(frozen=True, kw_only=True, slots=True)
class TokenRequest:
    """A token somebody asks for; checked when it is built."""

    principal_kind: PrincipalKind
    principal_name: str
    name: str
    actions: frozenset[Action]
    life: timedelta | None = None  # None: the default, or as long as the maker's own token if that ends sooner
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
        if self.life is not None and not timedelta(0) < self.life <= LONGEST_TOKEN_LIFE:
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

    @property
    def may_read(self) -> bool:
        """Whether answers may tell what is in the project. Without it a caller gets back what it sent, and what became
        of that."""
        return Action.READ in self.token.actions

    def require_within(self, request: TokenRequest, expires_at: datetime) -> None:
        """Raise `Forbidden` unless everything the requested token allows is allowed by the caller's own token."""
        wider = request.actions - self.token.actions
        if wider:
            raise Forbidden(
                f"Your token does not allow {', '.join(sorted(wider))}, so it cannot make a token that does; "
                f"it allows: {', '.join(sorted(self.token.actions))}."
            )
        if expires_at > self.token.expires_at:
            raise Forbidden(
                f"Your token expires at {self.token.expires_at:%Y-%m-%d %H:%M} UTC, and no token it makes can live "
                "longer. Ask for fewer days, or leave them out to get as many as possible."
            )
        below, asked = self.token.path_prefix, request.path_prefix
        if below is not None and (asked is None or not (asked == below or asked.is_below(below))):
            raise Forbidden(f"Your token is limited to {below}, and so are the tokens it makes.")
