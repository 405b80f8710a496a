"""About the server and the caller."""

from typing import Final

from fastapi import APIRouter, Request, Response

from contextbase import __version__
from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedCaller
from contextbase.interfaces.api.metrics import Metrics
from contextbase.wire.system import Me, ServerVersion

__all__ = ["router"]

router = APIRouter(tags=["system"])

_PROMETHEUS: Final = "text/plain; version=0.0.4"


@router.get("/api/v1/version")
async def version() -> ServerVersion:
    return ServerVersion(version=__version__)


@router.get("/api/v1/me")
async def me(caller: AuthenticatedCaller) -> Me:
    """Who the token says you are, and what it allows."""
    return Me(
        principal=caller.principal.name,
        kind=caller.principal.kind,
        is_owner=caller.principal.is_owner,
        token=caller.grant.name,
        actions=sorted(caller.grant.actions),
    )


@router.get(
    "/metrics",
    response_class=Response,
    responses={200: {"description": "Prometheus text.", "content": {_PROMETHEUS: {"schema": {"type": "string"}}}}},
)
async def metrics(request: Request, caller: AuthenticatedCaller) -> Response:
    """Prometheus metrics of this server process. Needs 'admin' of all projects."""
    caller.require(Action.ADMIN)
    collected: Metrics = request.app.state.metrics
    return Response(collected.exposition(), media_type=_PROMETHEUS)
