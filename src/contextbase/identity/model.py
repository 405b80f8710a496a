"""Principals, what is granted to them, and the caller: who acts, by which grant, by which way in."""

import re
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final

from contextbase.audit.model import Actor, WayIn
from contextbase.db.rows import Row
from contextbase.errors import Forbidden, InvalidInput
from contextbase.identity.roles import Rights
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath
from contextbase.vocabulary import Action, GrantSource, PrincipalKind

__all__ = [
    "DEFAULT_TOKEN_LIFE",
    "LONGEST_TOKEN_LIFE",
    "Action",
    "Caller",
    "Grant",
    "GrantSource",
    "PersonAccount",
    "Principal",
    "PrincipalKind",
    "PrincipalName",
    "Token",
    "TokenRequest",
]

DEFAULT_TOKEN_LIFE: Final = timedelta(days=90)
LONGEST_TOKEN_LIFE: Final = timedelta(days=3650)
_PRINCIPAL_NAME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}")


@dataclass(frozen=True, kw_only=True, slots=True)
class Principal:
    id: PrincipalId
    kind: PrincipalKind
    name: str
    is_owner: bool = False

    @classmethod
    def of_row(cls, row: Row, prefix: str = "principal_") -> "Principal":
        """From the columns of `principals`, each with the prefix before its name."""
        return cls(
            id=PrincipalId(row[f"{prefix}id"]),
            kind=PrincipalKind(row[f"{prefix}kind"]),
            name=row[f"{prefix}name"],
            is_owner=row[f"{prefix}is_owner"],
        )

    def is_user(self, name: str) -> bool:
        """Whether it is the user of that name. Agents and adapters may have a user's name."""
        return self.kind is PrincipalKind.USER and self.name == name

    def __str__(self) -> str:
        return f"{self.kind}:{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class PrincipalName:
    """How people name a principal: `agent:indexer`, or `indexer` where the kind does not matter."""

    name: str
    kind: PrincipalKind | None = None

    @classmethod
    def parse(cls, text: str) -> "PrincipalName":
        kind, colon, name = text.rpartition(":")
        if not _PRINCIPAL_NAME.fullmatch(name) or (colon and kind not in set(PrincipalKind)):
            raise InvalidInput(f"{text[:120]!r} is not a principal; use kind:name, for example agent:indexer.")
        return cls(name=name, kind=PrincipalKind(kind) if colon else None)

    def __str__(self) -> str:
        return self.name if self.kind is None else f"{self.kind}:{self.name}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Grant:
    """What a caller may do, where, and until when. The limits are the same wherever it comes from."""

    source: GrantSource
    actions: frozenset[Action]
    project_id: ProjectId | None = None  # None: every project the principal may use
    path_prefix: TreePath | None = None  # None: the whole tree
    expires_at: datetime | None = None  # None: with what it comes from
    token_id: TokenId | None = None
    name: str = ""  # of the token
    rights: Rights | None = None  # what the person's roles give; None: it is not a person's, and decides alone
    narrowed_from: frozenset[Action] | None = None  # of a person's: what it allows where roles give it
    maker: PrincipalId | None = None  # the person who answers for the agent whose it is

    def __post_init__(self) -> None:
        of_a_token = self.token_id is not None
        if (self.source is GrantSource.TOKEN and not of_a_token) or (of_a_token and self.source not in _OF_TOKENS):
            raise ValueError(f"The grant of a {self.source} {'has no token' if of_a_token else 'names its token'}.")

    def with_rights(self, rights: Rights) -> "Grant":
        """Of a person: `actions` are what it allows everywhere, and administering is for those whose role says so."""
        everywhere = self.ceiling if rights.is_platform_admin else self.ceiling - {Action.ADMIN}
        return replace(self, actions=everywhere, rights=rights, narrowed_from=self.ceiling)

    @property
    def ceiling(self) -> frozenset[Action]:
        """What it allows at most, wherever roles give it."""
        return self.actions if self.narrowed_from is None else self.narrowed_from

    def narrowed(self, actions: frozenset[Action], project_id: ProjectId | None) -> "Grant":
        """No more than these actions, in one project."""
        of_person = None if self.narrowed_from is None else self.narrowed_from & actions
        return replace(self, actions=self.actions & actions, project_id=project_id, narrowed_from=of_person)

    def inside(self, project_id: ProjectId, folder: TreePath | None) -> "Grant":
        """For that place alone, where something else than a role in the project lets a person in: an app that they may
        use. Whoever calls this has asked `authorize`."""
        return replace(
            self,
            actions=self.ceiling,
            rights=None,
            narrowed_from=None,
            project_id=project_id,
            path_prefix=folder,
        )

    def reaches(self, project_id: ProjectId) -> bool:
        """Whether it is good for that project. One that it does not reach does not exist, as far as it can tell."""
        if self.project_id not in (None, project_id):
            return False
        return self.rights is None or self.rights.is_platform_admin or project_id in self.rights.projects

    @property
    def reachable(self) -> list[ProjectId] | None:
        """The projects that it reaches; None: all."""
        if self.project_id is not None:
            return [self.project_id]
        return None if self.rights is None or self.rights.is_platform_admin else list(self.rights.projects)

    def allows(self, action: Action, project_id: ProjectId) -> bool:
        """Whether it allows the action in that project."""
        if not self.reaches(project_id):
            return False
        if self.rights is None or self.rights.is_platform_admin:
            return action in self.actions
        return action in self.ceiling and action in self.rights.projects[project_id]

    def require(self, action: Action, project_id: ProjectId | None = None) -> None:
        """Raise `Forbidden` unless it allows the action (for that project, or for all when None)."""
        if project_id is not None and self.rights is not None:
            if not self.allows(action, project_id):
                raise Forbidden(f"Your roles do not give you '{action}' in this project; ask an administrator of it.")
            return
        if action not in self.actions:
            raise Forbidden(f"This {self.source} does not allow '{action}'; it allows: {self._allowed}.")
        if self.project_id is not None and project_id != self.project_id:
            raise Forbidden(f"This {self.source} is limited to another project.")

    def require_within(self, request: "TokenRequest", expires_at: datetime) -> None:
        """Raise `Forbidden` unless everything the requested token allows is allowed by this grant."""
        if wider := request.actions - self.ceiling:
            raise Forbidden(
                f"Your {self.source} does not allow {', '.join(sorted(wider))}, so it cannot make a token that does; "
                f"it allows: {self._allowed}."
            )
        if self.expires_at is not None and expires_at > self.expires_at:
            raise Forbidden(
                f"Your {self.source} expires at {self.expires_at:%Y-%m-%d %H:%M} UTC, and no token it makes can live "
                "longer. Ask for fewer days, or leave them out to get as many as possible."
            )
        if self.project_id not in (None, request.project_id):
            raise Forbidden(f"Your {self.source} is limited to one project, and so are the tokens it makes.")
        below, asked = self.path_prefix, request.path_prefix
        if below is not None and (asked is None or not (asked == below or asked.is_below(below))):
            raise Forbidden(f"Your {self.source} is limited to {below}, and so are the tokens it makes.")

    @property
    def person(self) -> PrincipalId | None:
        """Who answers for what is made with it; None: the owner, or nobody."""
        return self.maker if self.rights is None else self.rights.person

    @property
    def _allowed(self) -> str:
        return ", ".join(sorted(self.actions)) or "nothing"


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonAccount:
    """What a request of a person depends on, beside its token or login."""

    rights: Rights
    is_disabled: bool

    def may_work_in(self, project_id: ProjectId | None) -> bool:
        """Whether the person is there, with a role in the project; None: in all of them."""
        has_role = self.rights.is_platform_admin or project_id in self.rights.projects
        return has_role and not self.is_disabled


_OF_TOKENS: Final = frozenset({GrantSource.TOKEN, GrantSource.LOGIN})


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
    account: PersonAccount | None = None  # of the person it belongs to; None: of nobody who has roles
    maker: PersonAccount | None = None  # of the person who made the agent it belongs to, and answers for it
    grant: Grant = field(init=False, compare=False, repr=False)  # made once, for the many requests that send the token

    def __post_init__(self) -> None:
        grant = Grant(
            source=GrantSource.TOKEN,
            token_id=self.id,
            name=self.name,
            actions=self.actions,
            project_id=self.project_id,
            path_prefix=self.path_prefix,
            expires_at=self.expires_at,
            maker=None if self.maker is None else self.maker.rights.person,
        )
        object.__setattr__(self, "grant", grant if self.account is None else grant.with_rights(self.account.rights))


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

    def is_for(self, principal: Principal) -> bool:
        return (self.principal_kind, self.principal_name) == (principal.kind, principal.name)


@dataclass(frozen=True, kw_only=True, slots=True)
class Caller:
    """Who acts, by which grant, by which way in, on behalf of whom. Everything below the interfaces gets one."""

    principal: Principal
    grant: Grant
    way_in: WayIn
    on_behalf_of: Principal | None = None  # who asked for it, if that is somebody else
    is_limited: bool = False  # to what whoever asked for it may do, as in a run
    origin: str = ""
    trace_id: str = ""

    @classmethod
    def with_token(
        cls, token: Token, source: GrantSource = GrantSource.TOKEN, *, origin: str = "", trace_id: str = ""
    ) -> "Caller":
        """Who sends a token, or came with a login made from it: this decides the way in of every request."""
        way_in = _WAYS_IN[token.principal.kind]
        if way_in is WayIn.API and source is GrantSource.LOGIN:
            way_in = WayIn.WEB_UI
        grant = token.grant if source is GrantSource.TOKEN else replace(token.grant, source=source)
        return cls(principal=token.principal, grant=grant, way_in=way_in, origin=origin, trace_id=trace_id)

    @classmethod
    def chore(cls, principal: Principal, actions: frozenset[Action], project_id: ProjectId | None = None) -> "Caller":
        """The server at work by itself, with exactly these rights."""
        grant = Grant(source=GrantSource.CHORE, actions=actions, project_id=project_id)
        return cls(principal=principal, grant=grant, way_in=WayIn.SYSTEM, origin="local")

    def require(self, action: Action, project_id: ProjectId | None = None) -> None:
        """Raise `Forbidden` unless the grant allows the action (for that project, or for all when None)."""
        self.grant.require(action, project_id)

    @property
    def administers_all(self) -> bool:
        """Whether the grant is for administering everything, and not one project."""
        return Action.ADMIN in self.grant.actions and self.grant.project_id is None

    def administers(self, project_id: ProjectId | None) -> bool:
        """Whether the grant is for administering that project (None: all of them)."""
        if project_id is None:
            return Action.ADMIN in self.grant.actions
        return self.grant.allows(Action.ADMIN, project_id)

    def listed_principal(self, project_id: ProjectId | None) -> PrincipalId | None:
        """Whose workspaces and sandboxes in that project (None: in all) the caller may list: its own, or (None)
        everybody's. Raises `Forbidden` if it may not even read."""
        everybody = self.administers(project_id)
        self.require(Action.ADMIN if everybody else Action.READ, project_id)
        return None if everybody else self.principal.id

    @property
    def limited_by(self) -> Principal | None:
        """Whose rights bound the caller's own: an agent in a run may do no more than whoever it works for, nor may the
        owner of its session who works in its folder."""
        return self.on_behalf_of if self.is_limited or self.grant.source is GrantSource.RUN else None

    @property
    def may_read(self) -> bool:
        """Whether answers may tell what is in the project. Without it a caller gets back what it sent, and what became
        of that."""
        return Action.READ in self.grant.actions

    def may_manage(self, token: Token) -> bool:
        """Whether the caller may list and revoke this token. Administrators may for all tokens, or for those of the
        one project that the grant is limited to; people also for their own (with a token for one project: for those
        of that project), and in projects that they administer. The owner's tokens are the owner's alone."""
        if self.grant.rights is not None and token.principal.id == self.principal.id:
            return self.grant.project_id in (None, token.project_id)
        administers = self.administers_all if token.project_id is None else self.administers(token.project_id)
        return administers and (self.principal.is_owner or not token.principal.is_owner)

    def working_as(self, principal: Principal) -> "Caller":
        """The caller at work in a workspace of ours: as whoever the workspace belongs to, on behalf of who asked. An
        agent is no external one there, wherever its request came from."""
        way_in = WayIn.AGENT if principal.kind is PrincipalKind.AGENT else self.way_in
        if principal.id == self.principal.id:
            return self if way_in is self.way_in else replace(self, way_in=way_in)
        return replace(self, principal=principal, way_in=way_in, on_behalf_of=self.on_behalf_of or self.principal)

    @property
    def actor(self) -> Actor:
        """The caller as audit rows name it."""
        return Actor(
            way_in=self.way_in,
            principal_id=self.principal.id,
            grant=self.grant.source,
            token_id=self.grant.token_id,
            on_behalf_of=None if self.on_behalf_of is None else self.on_behalf_of.id,
            origin=self.origin,
            trace_id=self.trace_id,
        )


_WAYS_IN: Final = {
    PrincipalKind.USER: WayIn.API,
    PrincipalKind.AGENT: WayIn.EXTERNAL_AGENT,
    PrincipalKind.ADAPTER: WayIn.SAAS_ADAPTER,
    PrincipalKind.SYSTEM: WayIn.SYSTEM,
}
