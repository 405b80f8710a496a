"""The paths and field names of the product's first documents, for programs that were written against them.

Each answers like the route it stands for, which is the one to use. None is in the OpenAPI document, so that generated
clients have every operation once."""

from typing import Annotated, Final

from fastapi import APIRouter, Path, Query, Response
from fastapi.routing import APIRoute
from pydantic import BaseModel, ConfigDict

from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.json_body import JsonBodyRoute
from contextbase.interfaces.api.routes import chat_aliases, commits, file_aliases, snapshots, workspaces
from contextbase.wire.commit import ProjectName
from contextbase.wire.workspace import (
    AgentName,
    WorkspaceCommit,
    WorkspaceCompleteView,
    WorkspaceCreate,
    WorkspaceView,
)

__all__ = ["router"]

router = APIRouter(include_in_schema=False, route_class=JsonBodyRoute)
router.include_router(file_aliases.router)
router.include_router(chat_aliases.router)

_COLLAB: Final = "/api/v1/collab"
_WORKSPACE: Final = "/api/v1/workspace"

router.add_api_route(f"{_COLLAB}/commit", commits.commit, methods=["POST"], route_class_override=APIRoute)
router.add_api_route(f"{_COLLAB}/checkout", snapshots.checkout, methods=["POST"], route_class_override=APIRoute)
router.add_api_route(f"{_COLLAB}/versions", snapshots.versions, methods=["GET"])


class AliasedWorkspaceCreate(BaseModel):
    model_config = ConfigDict(extra="forbid")

    project_id: ProjectName
    agent_id: AgentName | None = None
    base_snapshot_id: int | str | None = None


class AliasedWorkspaceView(WorkspaceView):
    workspace_path: str
    base_snapshot_id: int
    agent_id: str


@router.post(f"{_WORKSPACE}/create", status_code=201)
async def create_workspace(
    body: AliasedWorkspaceCreate,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    response: Response,
) -> AliasedWorkspaceView:
    asked = WorkspaceCreate(project=body.project_id, agent=body.agent_id, at=body.base_snapshot_id)
    return _aliased(await workspaces.create(asked, caller, services, agents, response))


@router.get(f"{_WORKSPACE}/{{project_id}}/path")
async def show_workspace(
    project_id: Annotated[ProjectName, Path()],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    agent_id: Annotated[AgentName | None, Query()] = None,
) -> AliasedWorkspaceView:
    named = await workspaces.named_workspace(_workspace_of(agent_id), caller, services, agents, project_id)
    return _aliased(await workspaces.show(named, caller, agents))


@router.post(f"{_WORKSPACE}/{{agent_id}}/complete")
async def complete_workspace(
    *,
    agent_id: Annotated[AgentName, Path()],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project_id: Annotated[ProjectName | None, Query()] = None,
    discard: Annotated[bool, Query()] = False,
    body: WorkspaceCommit | None = None,
) -> WorkspaceCompleteView:
    named = await workspaces.named_workspace(_workspace_of(agent_id), caller, services, agents, project_id)
    return await workspaces.complete(named=named, caller=caller, agents=agents, discard=discard, body=body)


def _workspace_of(agent: str | None) -> str:
    if agent is None:
        return workspaces.ME
    return agent if agent == workspaces.ME or ":" in agent else f"agent:{agent}"


def _aliased(view: WorkspaceView) -> AliasedWorkspaceView:
    return AliasedWorkspaceView(
        **dict(view), workspace_path=view.path, base_snapshot_id=view.base_seq, agent_id=view.agent
    )
