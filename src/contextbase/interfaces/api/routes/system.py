"""About the server and the caller."""

from typing import Final

from fastapi import APIRouter, Request, Response

from contextbase import __version__
from contextbase.bootstrap import ExaminationRun
from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.metrics import Metrics
from contextbase.wire.system import ChoresView, ChoreView, ExaminationView, FindingView, LeaderView, Me, ServerVersion

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


@router.get("/api/v1/chores")
async def chores(caller: AuthenticatedCaller, services: AuthenticatedServices) -> ChoresView:
    """Which server does the shared chores, and what came of their last runs. Needs 'admin' of all projects."""
    caller.require(Action.ADMIN)
    leader = await services.chores.leader()
    return ChoresView(
        leader=None
        if leader is None
        else LeaderView(server=leader.server, since=leader.since, term=leader.term, is_alive=leader.is_alive),
        chores=[
            ChoreView(
                name=run.name,
                server=run.server,
                every_seconds=run.every.total_seconds(),
                started_at=run.started_at,
                ended_at=run.ended_at,
                error=run.error,
                failures=run.failures,
                next_at=run.next_at,
            )
            for run in await services.chores.runs()
        ],
    )


@router.get("/api/v1/system/doctor")
async def doctor(request: Request, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> ExaminationView:
    """What works on this server's machine and what does not, found out now, with what to do about it. Needs 'admin' of
    all projects. Answers 503 when it takes longer than 20 seconds."""
    caller.require(Action.ADMIN)
    examination: ExaminationRun = request.app.state.services.examination
    found = await examination.result()
    return ExaminationView(
        machine=agents.workspaces.node.name,
        checked_at=found.checked_at,
        findings=[
            FindingView(name=one.name, answer=one.answer, detail=one.detail, advice=one.advice)
            for one in found.findings
        ],
    )
