"""Roles, where they hold, and what they give a person. Pure.

A role gives rights in one scope: nothing is inherited from one scope to another, and what no role gives is denied. Only
the administrators of the platform may do everything everywhere. Everybody has the role member for what is their own.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from contextbase.errors import InvalidInput
from contextbase.ids import PrincipalId, ProjectId
from contextbase.role_vocabulary import Right, Role, RoleScopeKind
from contextbase.vocabulary import Action

__all__ = ["GIVEN", "PLATFORM", "RightDecision", "Rights", "RoleBinding", "RoleScope", "check_slug"]

_SLUG: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")
_IDS: Final = {
    RoleScopeKind.APP: _SLUG,
    # A project's id, or the name of an app's own project: APP/NAME.
    RoleScopeKind.PROJECT: re.compile(rf"{_SLUG.pattern}(?:/{_SLUG.pattern})?"),
    RoleScopeKind.USER: re.compile(r"[A-Za-z0-9][A-Za-z0-9._@-]{0,99}"),
    RoleScopeKind.DEPARTMENT: _SLUG,
}


def check_slug(slug: str, what: str) -> str:
    """For names that are part of paths and addresses, and never change."""
    if not _SLUG.fullmatch(slug):
        raise InvalidInput(
            f"{what} has 1 to 100 lower-case letters, digits or ._- and starts with a letter or digit; "
            f"{slug[:120]!r} does not."
        )
    return slug


@dataclass(frozen=True, slots=True)
class RoleScope:
    """Where something is done: `platform`, `app:notes`, `project:ID`, `project:notes/default`, `user:ada`,
    `department:sales`."""

    kind: RoleScopeKind
    id: str = ""

    @classmethod
    def parse(cls, text: str) -> "RoleScope":
        kind, colon, name = text.partition(":")
        if kind not in set(RoleScopeKind) or bool(colon) == (kind == RoleScopeKind.PLATFORM):
            raise InvalidInput(f"{text[:120]!r} is not a scope; use platform, app:, project:, user: or department:.")
        scope = cls(RoleScopeKind(kind), name)
        if colon and not _IDS[scope.kind].fullmatch(name):
            raise InvalidInput(f"{text[:120]!r} is not a scope: the name after {kind}: is malformed.")
        return scope

    @classmethod
    def of_app(cls, slug: str) -> "RoleScope":
        return cls(RoleScopeKind.APP, slug)

    @classmethod
    def of_project(cls, project_id: ProjectId) -> "RoleScope":
        return cls(RoleScopeKind.PROJECT, str(project_id))

    @classmethod
    def of_app_project(cls, app: str, name: str) -> "RoleScope":
        return cls(RoleScopeKind.PROJECT, f"{app}/{name}")

    @classmethod
    def of_user(cls, slug: str) -> "RoleScope":
        return cls(RoleScopeKind.USER, slug)

    @classmethod
    def of_department(cls, name: str) -> "RoleScope":
        return cls(RoleScopeKind.DEPARTMENT, name)

    def __str__(self) -> str:
        return f"{self.kind}:{self.id}" if self.id else str(self.kind)


PLATFORM: Final = RoleScope(RoleScopeKind.PLATFORM)

_FILES: Final = frozenset[Right | Action]({Right.BROWSE_FILES, Right.EDIT_FILES, Action.READ, Action.WRITE})
_OWN: Final = _FILES | {Right.MANAGE_KB, Right.MANAGE_AGENTCONFIG, Right.OPEN_TERMINAL}
_ALL: Final = frozenset[Right | Action]({*Right, *Action})

GIVEN: Final[dict[tuple[Role, RoleScopeKind], frozenset[Right | Action]]] = {
    (Role.PLATFORM_ADMIN, RoleScopeKind.PLATFORM): _ALL,  # in every scope
    (Role.APP_ADMIN, RoleScopeKind.APP): _ALL,
    (Role.PROJECT_ADMIN, RoleScopeKind.PROJECT): _ALL,
    (Role.MEMBER, RoleScopeKind.PLATFORM): frozenset({Right.USE_APP}),  # of every app
    (Role.MEMBER, RoleScopeKind.APP): frozenset({Right.USE_APP}),
    (Role.MEMBER, RoleScopeKind.PROJECT): _FILES | {Right.USE_APP},
    (Role.MEMBER, RoleScopeKind.USER): _OWN,
    (Role.MEMBER, RoleScopeKind.DEPARTMENT): frozenset(),  # sees what is shown to the department
}
"""What each role gives in a scope of its kind. A pair that is missing here cannot be given to anybody."""


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleBinding:
    """A role that somebody has in a scope."""

    role: Role
    scope: RoleScope

    def __post_init__(self) -> None:
        if (self.role, self.scope.kind) not in GIVEN:
            fitting = ", ".join(sorted(kind for role, kind in GIVEN if role is self.role))
            raise InvalidInput(f"The role {self.role} is for scopes of kind {fitting}, not for {self.scope}.")

    def __str__(self) -> str:
        return f"{self.role} in {self.scope}"


@dataclass(frozen=True, kw_only=True, slots=True)
class RightDecision:
    allowed: bool
    reason: str  # what decided it


class Rights:
    """What one person's roles give, as they were when it was made; asked by every request of that person."""

    def __init__(
        self, *, person: PrincipalId, slug: str, bindings: Iterable[RoleBinding] = (), department: str | None = None
    ) -> None:
        own = RoleBinding(role=Role.MEMBER, scope=RoleScope.of_user(slug))
        self.person = person
        self.slug = slug
        self.bindings = frozenset(bindings)
        given: dict[RoleScope, frozenset[Right | Action]] = {}
        for binding in (*self.bindings, own):
            rights = GIVEN[binding.role, binding.scope.kind]
            given[binding.scope] = given.get(binding.scope, frozenset()) | rights
        self._everywhere = given.pop(PLATFORM, frozenset())
        self._by_scope = given
        self.is_platform_admin = any(each.role is Role.PLATFORM_ADMIN for each in self.bindings)
        departments = {each.scope.id for each in self.bindings if each.scope.kind is RoleScopeKind.DEPARTMENT}
        self.departments = frozenset(departments | ({department} if department else set()))
        self.projects = {
            ProjectId(project_id): frozenset(set(Action) & rights)
            for scope, rights in given.items()
            if scope.kind is RoleScopeKind.PROJECT and (project_id := _project_id(scope.id)) is not None
        }
        """The core's actions in the projects that they reach; an administrator of the platform reaches all."""

    def allows(self, action: Right | Action, scope: RoleScope) -> bool:
        if action in self._by_scope.get(scope, ()):
            return True
        return self.is_platform_admin or (
            action in self._everywhere and (scope.kind is RoleScopeKind.APP or scope == PLATFORM)
        )

    def decide(self, action: Right | Action, scope: RoleScope) -> RightDecision:
        """As `allows`, with what decided it."""
        if not self.allows(action, scope):
            return RightDecision(allowed=False, reason=f"no role of {self.slug} gives {action} in {scope}")
        if scope == RoleScope.of_user(self.slug):
            return RightDecision(allowed=True, reason="it is their own")
        deciding = sorted(
            str(each)
            for each in self.bindings
            if each.scope in (scope, PLATFORM) and action in GIVEN[each.role, each.scope.kind]
        )
        return RightDecision(allowed=True, reason=f"they have the role {deciding[0]}")

    @property
    def roles(self) -> frozenset[Role]:
        return frozenset({Role.MEMBER, *(each.role for each in self.bindings)})


def _project_id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
