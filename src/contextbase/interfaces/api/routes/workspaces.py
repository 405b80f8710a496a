"""A private folder for every agent, and the way back."""

from typing import Annotated, Final
from uuid import UUID

from fastapi import APIRouter, Depends, Path, Query, Response

from contextbase.errors import NotFound
from contextbase.identity.levels import check_pattern
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.json_body import JsonBodyRoute
from contextbase.interfaces.api.project_parameter import ProjectFilter
from contextbase.interfaces.api.routes.diffs import Patch
from contextbase.interfaces.api.workspace_views import (
    commit_view,
    complete_view,
    diff_page,
    refresh_view,
    status_view,
    workspace_view,
)
from contextbase.wire.commit import ProjectName
from contextbase.wire.workspace import (
    WorkspaceCommit,
    WorkspaceCommitView,
    WorkspaceCompleteView,
    WorkspaceCreate,
    WorkspaceDiffPage,
    WorkspaceName,
    WorkspacePage,
    WorkspaceRefreshView,
    WorkspaceStateName,
    WorkspaceStatusView,
    WorkspaceView,
)
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace, WorkspaceId
from contextbase.workspaces.repository import WorkspaceState
from contextbase.workspaces.settlement import ConflictsIn

__all__ = ["ME", "Named", "router"]

router = APIRouter(
    prefix="/api/v1/workspaces",
    tags=["workspaces"],
    responses=problem_answers(404, 409, 421),
    route_class=JsonBodyRoute,
)

ME: Final = "me"


async def named_workspace(
    workspace: Annotated[WorkspaceName, Path()],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project: Annotated[
        ProjectName | None, Query(description="Needed with a name, if the agent has workspaces in several projects.")
    ] = None,
) -> NamedWorkspace:
    project_id = None if project is None else await services.projects.id_of(caller, project)
    try:
        workspace_id = WorkspaceId(workspace)
    except ValueError:
        agent = None if workspace == ME else workspace
        if project_id is None:
            project_id = caller.grant.project_id
        if project_id is None:
            project_id = await agents.workspaces.project_of(caller, agent or caller.principal.name)
        return NamedWorkspace(project_id, agent)
    record = await agents.workspaces.find(caller, workspace_id)
    if project_id not in (None, record.project_id):
        raise NotFound(f"There is no workspace {workspace_id}.")
    return NamedWorkspace(record.project_id, str(record.principal), id=record.id)


Named = Annotated[NamedWorkspace, Depends(named_workspace)]


@router.post("", status_code=201, responses={200: {"model": WorkspaceView, "description": "It had one already"}})
async def create(
    body: WorkspaceCreate,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    response: Response,
) -> WorkspaceView:
    """A folder that shows the head, or an earlier snapshot, as the agent may see it; or the one the agent has already,
    as it is. Asked for another snapshot or folder than that one was made from, or for metadata that it is without, the
    answer is 409."""
    project_id = await services.projects.id_of(caller, body.project)
    at = None if body.at is None else await services.snapshots.find(caller, project_id, str(body.at))
    folder = None if body.folder is None else TreePath.parse(body.folder)
    created = await agents.workspaces.create(
        caller, project_id, body.agent, at=at, folder=folder, has_metadata=body.meta
    )
    if not created.is_new:
        response.status_code = 200
    return workspace_view(created.record)


@router.get("")
async def list_workspaces(
    *,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    project_id: ProjectFilter,
    state: Annotated[WorkspaceStateName | None, Query(description="Left out: any.")] = None,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> WorkspacePage:
    """Newest first: everybody's for 'admin', else your own."""
    found = await agents.workspaces.list(
        caller,
        project_id or caller.grant.project_id,
        state=None if state is None else WorkspaceState(state),
        before=None if before is None else WorkspaceId(int=before.int),
        limit=limit + 1,
    )
    return WorkspacePage(
        workspaces=[workspace_view(record) for record in found[:limit]],
        next_before=found[limit - 1].id if len(found) > limit else None,
    )


@router.get("/{workspace}")
async def show(named: Named, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> WorkspaceView:
    """An open workspace. After a crash or reboot the folder is there again when this answers."""
    found = await agents.workspaces.path(caller, named)
    return workspace_view(found)


@router.get("/{workspace}/status")
async def status(named: Named, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> WorkspaceStatusView:
    """What is in the folder and not committed yet. Changes nothing."""
    record, look = await agents.workspaces.status(caller, named)
    return status_view(record, look)


@router.get("/{workspace}/diff")
async def diff(
    *,
    named: Named,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    path: Annotated[str | None, Query(max_length=2048, description="A file, or a folder and all in it.")] = None,
    after: Annotated[str, Query(max_length=2048, pattern=r"^[^\x00]*$")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    patch: Patch = False,
) -> WorkspaceDiffPage:
    """How what is not committed yet differs from what the agent was given, or committed last; by path."""
    files, next_after = await agents.workspaces.diff(
        caller,
        named,
        below=None if path is None else TreePath.parse(path),
        after=after,
        limit=limit,
    )
    return diff_page(files, next_after, patch=patch)


@router.post("/{workspace}/commit", responses=problem_answers(429))
async def commit(
    *,
    named: Named,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    refresh: Annotated[bool, Query(description="Then bring what others have changed into the folder.")] = False,
    body: WorkspaceCommit | None = None,
) -> WorkspaceCommitView:
    """What changed goes through the gate, and the agent goes on in its folder. Needs 'write' if there is anything.

    Sent again after a lost answer, it commits what is new since: nothing happens twice."""
    record, committed = await agents.workspaces.commit(caller, named, wish=_wish(body), refresh=refresh)
    return commit_view(record, committed)


@router.post("/{workspace}/refresh", responses=problem_answers(429))
async def refresh(named: Named, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> WorkspaceRefreshView:
    """What others have changed comes into the folder, while the agent works in it: as it is where the agent left a file
    alone, merged where that is clean. Everything else stays as the agent has it."""
    record, refreshed = await agents.workspaces.refresh(caller, named)
    return refresh_view(record, refreshed)


@router.post("/{workspace}/complete", responses=problem_answers(429))
async def complete(
    *,
    named: Named,
    caller: AuthenticatedCaller,
    agents: AuthenticatedAgents,
    discard: Annotated[bool, Query(description="Remove the folder even with what could not be committed.")] = False,
    body: WorkspaceCommit | None = None,
) -> WorkspaceCompleteView:
    """Commit, then remove the folder, unless it holds what could not be committed. Harmless when done already."""
    completed = await agents.workspaces.complete(caller, named, wish=_wish(body), discard=discard)
    return complete_view(completed)


@router.post("/{workspace}/abandon")
async def abandon(named: Named, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> WorkspaceView:
    """Remove the folder and what is in it, for good."""
    ended = await agents.workspaces.abandon(caller, named)
    return workspace_view(ended)


def _wish(body: WorkspaceCommit | None) -> Wish:
    body = body or WorkspaceCommit()
    return Wish(
        message=body.message,
        run=body.run,
        conflicts_in=ConflictsIn(body.conflicts_in),
        allow=tuple(map(check_pattern, body.allow)),
    )
