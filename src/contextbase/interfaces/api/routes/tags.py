"""Which snapshot a ref means, and names for snapshots."""

from typing import Annotated

from fastapi import APIRouter, Path, Query

from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToRead, ProjectToWrite
from contextbase.wire.snapshot import LONGEST_REF, SnapshotView, TagCreate, TagPage, TagView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/history", tags=["history"], responses=problem_answers(404))


@router.get("/resolve")
async def resolve(
    *,
    project_id: ProjectToRead,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    ref: Annotated[str, Query(max_length=LONGEST_REF)] = "head",
) -> SnapshotView:
    """The snapshot that is meant by a seq, `head`, `head~3`, a time (the last commit at or before it) or a tag."""
    return SnapshotView(seq=await services.snapshots.find(caller, project_id, ref))


@router.get("/tags")
async def tags(
    *,
    project_id: ProjectToRead,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    after: Annotated[str, Query(max_length=100, pattern=r"^[^\x00]*$")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> TagPage:
    """Tags, by name."""
    found = await services.snapshots.tags(caller, project_id, after=after, limit=limit + 1)
    return TagPage(
        tags=[TagView.model_validate(tag) for tag in found[:limit]],
        next_after=found[limit - 1].name if len(found) > limit else None,
    )


@router.post("/tags", status_code=201, responses=problem_answers(409))
async def create_tag(body: TagCreate, caller: AuthenticatedCaller, services: AuthenticatedServices) -> TagView:
    """Give a snapshot a name."""
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    tag = await services.snapshots.create_tag(caller, project_id, body.name, ref=body.ref, message=body.message)
    return TagView.model_validate(tag)


@router.delete("/tags/{name}", status_code=204)
async def delete_tag(
    *,
    name: Annotated[str, Path(max_length=100, pattern=r"^[^\x00]*$")],
    project_id: ProjectToWrite,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> None:
    """Take a name away; the snapshot stays."""
    await services.snapshots.delete_tag(caller, project_id, name)
