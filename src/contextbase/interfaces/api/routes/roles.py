"""Roles: what each gives, who has which where, and why somebody may do something."""

from typing import Annotated

from fastapi import APIRouter, Query

from contextbase.identity.roles import GIVEN
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.role_vocabulary import Right, Role
from contextbase.vocabulary import Action
from contextbase.wire.people import (
    RightView,
    RoleBindingBody,
    RoleBindingPage,
    RoleBindingView,
    RoleChanged,
    RolesView,
    RoleView,
)

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/roles", tags=["people"], responses=problem_answers(404))

Slug = Annotated[str, Query(description="The person's slug.", max_length=100, pattern=r"^[^\x00]*$")]
ScopeText = Annotated[str, Query(description="Such as project:notes.", max_length=220)]


@router.get("")
async def list_roles(caller: AuthenticatedCaller) -> RolesView:  # noqa: ARG001 - demands a caller
    """What each role gives in each kind of scope."""
    return RolesView(
        roles=[RoleView(role=role, scope=kind, gives=sorted(gives, key=str)) for (role, kind), gives in GIVEN.items()]
    )


@router.get("/bindings")
async def list_bindings(
    *,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    user: Slug | None = None,
    scope: ScopeText | None = None,
    offset: Annotated[int, Query(ge=0, le=1_000_000)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> RoleBindingPage:
    """Who has which role: of a person, in a scope, or everywhere. Everybody sees their own."""
    found = await services.people.roles.list(caller, slug=user, place=scope, offset=offset, limit=limit + 1)
    page = [
        RoleBindingView(
            user=held.person,
            role=held.binding.role,
            scope=held.place,
            granted_by=held.granted_by,
            granted_at=held.granted_at,
        )
        for held in found[:limit]
    ]
    return RoleBindingPage(bindings=page, next_offset=offset + limit if len(found) > limit else None)


@router.put("/bindings")
async def grant_role(
    body: RoleBindingBody, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> RoleChanged:
    """Give a person a role in a scope."""
    changed = await services.people.roles.grant(caller, body.user, body.role, body.scope)
    return RoleChanged(user=body.user, role=body.role, scope=body.scope, changed=changed)


@router.delete("/bindings")
async def revoke_role(
    *,
    user: Slug,
    role: Role,
    scope: ScopeText = "platform",
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> RoleChanged:
    """Take a role away. It takes effect within a second, also for what agents do for the person."""
    changed = await services.people.roles.revoke(caller, user, role, scope)
    return RoleChanged(user=user, role=role, scope=scope, changed=changed)


@router.get("/explain")
async def explain_right(
    user: Slug,
    action: Right | Action,
    scope: ScopeText,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> RightView:
    """Whether a person may do something somewhere, and which role decides it. A token may allow less."""
    decision = await services.people.roles.explain(caller, user, action, scope)
    return RightView(user=user, action=action, scope=scope, allowed=decision.allowed, reason=decision.reason)
