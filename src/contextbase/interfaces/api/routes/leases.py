"""Leases: "I am on this file"."""

from typing import Annotated

from fastapi import APIRouter, Path, Query, Request

from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToRead, ProjectToWrite
from contextbase.leases import Lease
from contextbase.wire.commit import MOST_SEQ
from contextbase.wire.lease import (
    LeaseAcquire,
    LeaseHeartbeat,
    LeasePage,
    LeasesReleased,
    LeaseView,
)

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/leases", tags=["leases"], responses=problem_answers(404))

Token = Annotated[int, Path(ge=1, le=MOST_SEQ)]
Owner = Annotated[str | None, Query(max_length=256, pattern=r"^[!-~]*$")]


@router.post("", status_code=201, responses=problem_answers(409))
async def acquire_lease(
    request: Request, body: LeaseAcquire, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> LeaseView:
    """Reserve a path or pattern: `lease_held` (409) if somebody else has one that overlaps for as long as you wait. It
    lasts until it is released, or no heartbeat comes for its `ttl_seconds`. Needs 'write'."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    lease = await services.leases.acquire(
        caller,
        project_id,
        body.pattern,
        worker=body.worker,
        wait=body.wait,
        key=body.key,
        is_gone=request.is_disconnected,
    )
    return _view(lease, services)


@router.get("")
async def list_leases(
    *,
    project_id: ProjectToRead,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    owner: Owner = None,
    path: Annotated[str | None, Query(max_length=1024, description="Those that overlap with it.")] = None,
    after: Annotated[int, Query(ge=0, le=MOST_SEQ)] = 0,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> LeasePage:
    """Who is on what, of what you may see."""
    found = await services.leases.page(caller, project_id, owner=owner, pattern=path, after=after, limit=limit + 1)
    next_after = found[limit - 1].token if len(found) > limit else None
    return LeasePage(leases=[_view(lease, services) for lease in found[:limit]], next_after=next_after)


@router.post("/{token}/heartbeat", responses=problem_answers(409))
async def renew_lease(
    token: Token, body: LeaseHeartbeat, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> LeaseView:
    """Keep a lease for another `ttl_seconds`; `lease_lost` (409) when it is not yours any more."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    return _view(await services.leases.heartbeat(caller, project_id, token), services)


@router.delete("/{token}", status_code=204)
async def release_lease(
    token: Token, project_id: ProjectToWrite, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> None:
    """End a lease; also succeeds when it has ended. Somebody else's needs 'admin'."""
    await services.leases.release(caller, project_id, token)


@router.delete("")
async def release_leases(
    project_id: ProjectToWrite,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    owner: Owner = None,
) -> LeasesReleased:
    """End all leases of an owner and its workers: your own, or with 'admin' anybody's."""
    return LeasesReleased(released=await services.leases.release_all(caller, project_id, owner))


def _view(lease: Lease, services: AuthenticatedServices) -> LeaseView:
    return LeaseView(
        token=lease.token,
        pattern=lease.pattern,
        owner=lease.owner,
        acquired_at=lease.acquired_at,
        expires_at=lease.expires_at,
        ttl_seconds=services.leases.ttl.total_seconds(),
    )
