"""The one question of who may do what where: `authorize(caller, action, scope)`. Pure, and denied by default.

What a person's roles give comes with the caller and is at most a second old. The limits of a token or login hold beside
the roles. Paths below a project are decided by `levels.py`, for every caller alike.
"""

from dataclasses import dataclass
from typing import Final

from contextbase.errors import Forbidden
from contextbase.identity.model import Caller
from contextbase.identity.roles import RightDecision, RoleScope
from contextbase.role_vocabulary import Right, Role, RoleScopeKind
from contextbase.vocabulary import Action

__all__ = ["PersonStanding", "authorize", "decide", "standing"]

_NEEDS: Final[dict[Right, Action]] = {
    Right.USE_APP: Action.READ,
    Right.BROWSE_FILES: Action.READ,
    Right.MANAGE_KB: Action.WRITE,
    Right.MANAGE_AGENTCONFIG: Action.WRITE,
    Right.EDIT_FILES: Action.WRITE,
    Right.OPEN_TERMINAL: Action.WRITE,
}
"""What a token must allow beside the right."""

_OF_FILES: Final = frozenset[Right | Action]({Right.BROWSE_FILES, Right.EDIT_FILES, Action.READ, Action.WRITE})


@dataclass(frozen=True, kw_only=True, slots=True)
class PersonStanding:
    """What the rules on who sees an app ask about somebody."""

    departments: frozenset[str]
    roles: frozenset[Role]


def authorize(caller: Caller, action: Right | Action, scope: RoleScope) -> None:
    """Raise `Forbidden` unless the caller may do it there."""
    if not _allowed(caller, action, scope):
        raise Forbidden(f"You may not do this ({action} in {scope}): {decide(caller, action, scope).reason}.")


def decide(caller: Caller, action: Right | Action, scope: RoleScope) -> RightDecision:
    """As `authorize`, as an answer with what decided it."""
    grant = caller.grant
    needed = action if isinstance(action, Action) else _NEEDS[action]
    if not _within_grant(caller, needed, scope):
        limit = f"does not allow '{needed}'" if needed not in grant.ceiling else "is limited to another project"
        return RightDecision(allowed=False, reason=f"this {grant.source} {limit}")
    if grant.rights is not None:
        return grant.rights.decide(action, scope)
    if _allowed(caller, action, scope):
        who = "the owner may do everything" if caller.principal.is_owner else f"this {grant.source} allows it"
        return RightDecision(allowed=True, reason=who)
    return RightDecision(allowed=False, reason=f"{caller.principal} has no role, and this {grant.source} is not enough")


def standing(caller: Caller) -> PersonStanding:
    rights = caller.grant.rights
    if rights is not None:
        return PersonStanding(departments=rights.departments, roles=rights.roles)
    administers = caller.principal.is_owner or Action.ADMIN in caller.grant.actions
    return PersonStanding(departments=frozenset(), roles=frozenset({Role.PLATFORM_ADMIN} if administers else ()))


def _allowed(caller: Caller, action: Right | Action, scope: RoleScope) -> bool:
    needed = action if isinstance(action, Action) else _NEEDS[action]
    if not _within_grant(caller, needed, scope):
        return False
    rights = caller.grant.rights
    if rights is not None:
        return rights.allows(action, scope)
    if caller.principal.is_owner or Action.ADMIN in caller.grant.actions:
        return True
    if scope.kind is RoleScopeKind.USER:
        return caller.principal.is_user(scope.id)
    return action in _OF_FILES and (scope.kind is RoleScopeKind.PROJECT and "/" not in scope.id)


def _within_grant(caller: Caller, needed: Action, scope: RoleScope) -> bool:
    grant = caller.grant
    if needed not in grant.ceiling:
        return False
    return grant.project_id is None or scope == RoleScope.of_project(grant.project_id)
