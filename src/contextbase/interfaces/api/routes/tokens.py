"""Tokens."""

from datetime import timedelta
from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Query

from contextbase.identity.model import Action, PrincipalKind, Token, TokenRequest
from contextbase.ids import TokenId, TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.wire.token import TokenCreate, TokenCreated, TokenPage, TokenRevoked, TokenView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/tokens", tags=["tokens"], responses=problem_answers(404))


@router.post("", status_code=201)
async def create_token(body: TokenCreate, caller: AuthenticatedCaller, services: AuthenticatedServices) -> TokenCreated:
    """Make a token; its secret is in this answer and nowhere else. It allows no more than your own token, and does not
    outlive it. Needs 'admin'; people make tokens for themselves without."""
    is_own = caller.grant.rights is not None and body.kind == caller.principal.kind
    needed = Action.READ if is_own and body.principal == caller.principal.name else Action.ADMIN
    project = await services.projects.find(caller, body.project, action=needed) if body.project else None
    request = TokenRequest(
        principal_kind=PrincipalKind(body.kind),
        principal_name=body.principal,
        name=body.name or body.principal,
        actions=frozenset(map(Action, body.actions)),
        life=None if body.days is None else timedelta(days=body.days),
        project_id=project.id if project else None,
        path_prefix=None if body.path is None else TreePath.parse(body.path),  # empty is an error, not "all"
    )
    token, secret = await services.identity.create_token(caller, request)
    return TokenCreated(**_view(token).model_dump(), secret=secret)


@router.get("")
async def list_tokens(
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> TokenPage:
    """The tokens that you may manage, newest first, without secrets: all, or those of the project that your token is
    limited to; the owner's are shown to the owner alone. Needs 'admin'."""
    cursor = None if before is None else TokenId(before)
    found = await services.identity.list_tokens(caller, before=cursor, limit=limit + 1)
    page = found[:limit]
    return TokenPage(tokens=[_view(token) for token in page], next_before=page[-1].id if len(found) > limit else None)


@router.delete("/{token_id}")
async def revoke_token(token_id: UUID, caller: AuthenticatedCaller, services: AuthenticatedServices) -> TokenRevoked:
    """Revoke a token for good, if you may manage it; else there is no such token. Needs 'admin'."""
    revoked_now = await services.identity.revoke_token(caller, TokenId(token_id))
    return TokenRevoked(id=token_id, revoked_now=revoked_now)


def _view(token: Token) -> TokenView:
    return TokenView(
        id=token.id,
        principal=token.principal.name,
        kind=token.principal.kind,
        name=token.name,
        actions=sorted(token.actions),
        project_id=token.project_id,
        path=token.path_prefix,
        created_at=token.created_at,
        expires_at=token.expires_at,
        revoked_at=token.revoked_at,
    )
