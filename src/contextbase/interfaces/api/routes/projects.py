"""Projects."""

from dataclasses import asdict
from typing import Annotated

from fastapi import APIRouter, Path, Query

from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.storage.model import Project
from contextbase.wire.project import NAME_OR_ID, ProjectChange, ProjectCreate, ProjectDetail, ProjectPage, ProjectView
from contextbase.wire.workspace import SharedFolderView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/projects", tags=["projects"], responses=problem_answers(404, 409))

NameOrId = Annotated[str, Path(description="The project's name or id.", max_length=100, pattern=NAME_OR_ID)]
Limit = Annotated[int, Query(ge=1, le=1000)]


@router.post("", status_code=201)
async def create_project(
    body: ProjectCreate, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ProjectView:
    """Make an empty project. Needs 'admin'."""
    return _view(await services.projects.create(caller, body.name, body.description))


@router.get("")
async def list_projects(
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    after: Annotated[str, Query(max_length=100, pattern=f"^$|{NAME_OR_ID}")] = "",
    limit: Limit = 100,
) -> ProjectPage:
    """The projects this token may read, by name."""
    found = await services.projects.list(caller, after=after, limit=limit + 1)
    page = found[:limit]
    return ProjectPage(
        projects=[_view(project) for project in page], next_after=page[-1].name if len(found) > limit else None
    )


@router.get("/{project}")
async def show_project(
    project: NameOrId, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ProjectDetail:
    """A project, with its size for who may see everything in it: it would tell others of what is hidden."""
    found = await services.projects.find(caller, project)
    async with services.database.connection() as connection:
        authority = await services.gate.authority(connection, caller, found.id)
    sizes = asdict(await services.projects.sizes(found.id)) if authority.sees_everything else {}
    return ProjectDetail(**_view(found).model_dump(), **sizes)


@router.patch("/{project}")
async def change_project(
    project: NameOrId, body: ProjectChange, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ProjectView:
    """Change which new files workspaces commit. Needs 'admin'."""
    found = await services.projects.find(caller, project, action=Action.ADMIN)
    changed = await services.projects.set_sharing(
        caller, found.id, reads_gitignore=body.reads_gitignore, allowed_secrets=body.allowed_secrets
    )
    return _view(changed)


@router.delete("/{project}")
async def delete_project(
    project: NameOrId, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> ProjectView:
    """Hide the project and free its name; its history stays stored. Needs 'admin'."""
    found = await services.projects.find(caller, project)
    await services.projects.delete(caller, found.id)
    return _view(found)


@router.get("/{project}/shared-folder", responses=problem_answers(421))
async def shared_folder(
    project: NameOrId, caller: AuthenticatedCaller, services: AuthenticatedServices, agents: AuthenticatedAgents
) -> SharedFolderView:
    """A folder to read in, which all who may see the same share. It follows the head, a few seconds behind."""
    project_id = await services.projects.id_of(caller, project)
    await agents.workspaces.refuse_unless_machine()
    shared = await agents.shared_views.open(caller, project_id)
    snapshot = shared.view.snapshot
    return SharedFolderView(
        path=str(shared.path), seq=snapshot.seq, epoch=snapshot.epoch, machine=agents.workspaces.node.name
    )


def _view(project: Project) -> ProjectView:
    return ProjectView(
        id=project.id,
        name=project.name,
        description=project.description,
        head=project.head,
        epoch=project.epoch,
        created_at=project.created_at,
        reads_gitignore=project.sharing.reads_gitignore,
        allowed_secrets=list(project.sharing.allowed_secrets),
    )
