"""A private folder for every agent, and the way back."""

from typing import Annotated
from uuid import UUID

from fastapi import APIRouter, Path, Query, Response

from contextbase.bootstrap import AgentServices, CoreServices
from contextbase.identity.levels import check_pattern
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId, TreePath
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.json_body import JsonBodyRoute
from contextbase.interfaces.api.routes.diffs import Patch
from contextbase.interfaces.api.workspace_views import (
    commit_view,
    complete_view,
    diff_page,
    status_view,
    workspace_view,
)
from contextbase.wire.commit import ProjectName
from contextbase.wire.workspace import (
    AgentName,
    SharedFolderView,
    WorkspaceCommit,
    WorkspaceCommitView,
    WorkspaceCompleteView,
    WorkspaceCreate,
    WorkspaceDiffPage,
    WorkspacePage,
    WorkspaceStateName,
    WorkspaceStatusView,
    WorkspaceView,
)
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.repository import WorkspaceState
from contextbase.workspaces.settlement import ConflictsIn

__all__ = ["router"]

router = APIRouter(
    prefix="/api/v1/workspace",
    tags=["workspaces"],
    responses=problem_answers(404, 409, 421),
    route_class=JsonBodyRoute,
)

Agent = Annotated[AgentName, Path(description="Such as agent:indexer or indexer; `me`: the caller.")]
Project = Annotated[ProjectName | None, Query(description="Needed only if the agent has workspaces in several.")]
_ME = "me"


@router.post("/create", status_code=201, responses={200: {"model": WorkspaceView, "description": "It had one already"}})
async def create(
    body: WorkspaceCreate,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    response: Response,
) -> WorkspaceView:
    """A folder that shows the head, or an earlier snapshot, as the agent may see it; or the one the agent has already,
    as it is. Asked for another snapshot than that one was made from, the answer is 409."""
    project_id = await services.projects.id_of(caller, body.project_id)
    ref = body.base_snapshot_id
    at = None if ref is None else await services.snapshots.find(caller, project_id, str(ref))
    created = await agents.workspaces.create(caller, project_id, _named(body.agent_id), at=at)
    if not created.is_new:
        response.status_code = 200
    return workspace_view(created.record)


@router.get("")
async def list_workspaces(
    *,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project_id: Annotated[ProjectName | None, Query(description="Left out: all you may see.")] = None,
    state: Annotated[WorkspaceStateName | None, Query(description="Left out: any.")] = None,
    before: UUID | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> WorkspacePage:
    """Newest first: everybody's for 'admin', else your own."""
    found = await agents.workspaces.list(
        caller,
        await services.projects.id_of(caller, project_id) if project_id else caller.grant.project_id,
        state=None if state is None else WorkspaceState(state),
        before=None if before is None else WorkspaceId(int=before.int),
        limit=limit + 1,
    )
    return WorkspacePage(
        workspaces=[workspace_view(record) for record in found[:limit]],
        next_before=found[limit - 1].id if len(found) > limit else None,
    )


@router.get("/{project_id}/path")
async def path(
    *,
    project_id: Annotated[ProjectName, Path()],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    agent_id: Annotated[AgentName | None, Query(description="Left out: your own.")] = None,
) -> WorkspaceView:
    """Where the agent works. After a crash or reboot the folder is there again when this answers."""
    found = await services.projects.id_of(caller, project_id)
    return workspace_view(await agents.workspaces.path(caller, found, _named(agent_id)))


@router.get("/{project_id}/view")
async def view(
    project_id: Annotated[ProjectName, Path()],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
) -> SharedFolderView:
    """A folder to read in, of which all who may see the same share one. It follows the head, a few seconds behind."""
    found = await services.projects.id_of(caller, project_id)
    shared = await agents.shared_views.open(caller, found)
    snapshot = shared.view.snapshot
    return SharedFolderView(
        path=str(shared.path), seq=snapshot.seq, epoch=snapshot.epoch, node=agents.workspaces.node.name
    )


@router.get("/{agent_id}/status")
async def status(
    agent_id: Agent,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project_id: Project = None,
) -> WorkspaceStatusView:
    """What is in the folder and not committed yet. Changes nothing."""
    found = await _project(services, agents, caller, agent_id, project_id)
    record, look = await agents.workspaces.status(caller, found, _named(agent_id))
    return status_view(record, look)


@router.get("/{agent_id}/diff")
async def diff(
    *,
    agent_id: Agent,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project_id: Project = None,
    path: Annotated[str | None, Query(max_length=2048, description="A file, or a folder and all in it.")] = None,
    after: Annotated[str, Query(max_length=2048, pattern=r"^[^\x00]*$")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    patch: Patch = False,
) -> WorkspaceDiffPage:
    """How what is not committed yet differs from what the agent was given, or committed last; by path."""
    found = await _project(services, agents, caller, agent_id, project_id)
    files, next_after = await agents.workspaces.diff(
        caller,
        found,
        _named(agent_id),
        below=None if path is None else TreePath.parse(path),
        after=after,
        limit=limit,
    )
    return diff_page(files, next_after, patch=patch)


@router.post("/{agent_id}/commit", responses=problem_answers(429))
async def commit(
    *,
    agent_id: Agent,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project_id: Project = None,
    body: WorkspaceCommit | None = None,
) -> WorkspaceCommitView:
    """What changed goes through the gate, and the agent goes on in its folder. Needs 'write' if there is anything.

    Sent again after a lost answer, it commits what is new since: nothing happens twice."""
    found = await _project(services, agents, caller, agent_id, project_id)
    record, committed = await agents.workspaces.commit(caller, found, _named(agent_id), wish=_wish(body))
    return commit_view(record, committed)


@router.post("/{agent_id}/complete", responses=problem_answers(429))
async def complete(
    *,
    agent_id: Agent,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project_id: Project = None,
    discard: Annotated[bool, Query(description="Remove the folder even with what could not be committed.")] = False,
    body: WorkspaceCommit | None = None,
) -> WorkspaceCompleteView:
    """Commit, then remove the folder, unless it holds what could not be committed. Harmless when done already."""
    found = await _project(services, agents, caller, agent_id, project_id)
    completed = await agents.workspaces.complete(caller, found, _named(agent_id), wish=_wish(body), discard=discard)
    return complete_view(completed)


@router.post("/{agent_id}/abandon")
async def abandon(
    agent_id: Agent,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project_id: Project = None,
) -> WorkspaceView:
    """Remove the folder and what is in it, for good."""
    found = await _project(services, agents, caller, agent_id, project_id)
    ended = await agents.workspaces.abandon(caller, found, _named(agent_id))
    return workspace_view(ended)


async def _project(
    services: CoreServices, agents: AgentServices, caller: Caller, agent_id: str, project: str | None
) -> ProjectId:
    """The project that was named, or the only one there can be."""
    if project is not None:
        return await services.projects.id_of(caller, project)
    if caller.grant.project_id is not None:
        return caller.grant.project_id
    return await agents.workspaces.project_of(caller, _named(agent_id) or caller.principal.name)


def _named(agent_id: str | None) -> str | None:
    return None if agent_id == _ME else agent_id


def _wish(body: WorkspaceCommit | None) -> Wish:
    body = body or WorkspaceCommit()
    return Wish(
        message=body.message,
        run=body.run,
        conflicts_in=ConflictsIn(body.conflicts_in),
        allow=tuple(map(check_pattern, body.allow)),
    )
