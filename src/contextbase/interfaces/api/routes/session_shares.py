"""Sharing sessions with people."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectFilter
from contextbase.interfaces.api.routes.sessions import NamedSession
from contextbase.interfaces.api.session_views import session_view
from contextbase.sessions.model import SessionId
from contextbase.wire.session import SessionPage
from contextbase.wire.session_share import SessionShareList, SessionSharePut, SessionShareView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1", tags=["sessions"], responses=problem_answers(404))

Slug = Annotated[str, Path(description="The person's slug.", max_length=100, pattern=r"^[^\x00]*$")]


@router.get("/shared-sessions")
async def list_shared_sessions(
    *,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    project_id: ProjectFilter,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> SessionPage:
    """Sessions that others share with you, newest first."""
    found, next_before = await services.sessions.shares.with_caller(
        caller,
        project_id=project_id,
        before=None if before is None else SessionId(before),
        limit=limit,
    )
    return SessionPage(sessions=[session_view(session) for session in found], next_before=next_before)


@router.get("/sessions/{session}/shares")
async def list_shares(
    session: NamedSession, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> SessionShareList:
    """Whom a session is shared with. Whoever it is shared with sees themselves."""
    found = await services.sessions.shares.list(caller, session)
    return SessionShareList(shares=[SessionShareView.model_validate(share) for share in found])


@router.put("/sessions/{session}/shares/{user}")
async def share_session(
    session: NamedSession,
    user: Slug,
    body: SessionSharePut,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> SessionShareList:
    """Let a person read or drive a session of yours. They must be able to read where it works."""
    found = await services.sessions.shares.share(caller, session, user, body.level)
    return SessionShareList(shares=[SessionShareView.model_validate(share) for share in found])


@router.delete("/sessions/{session}/shares/{user}", status_code=204)
async def unshare_session(
    session: NamedSession, user: Slug, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> Response:
    """Share it with a person no more, within a second; or leave a session that somebody shares with you."""
    await services.sessions.shares.unshare(caller, session, user)
    return Response(status_code=204)
