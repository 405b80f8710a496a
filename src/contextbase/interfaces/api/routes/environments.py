"""What a project's sessions find in their sandboxes beside its files."""

from fastapi import APIRouter

from contextbase.identity.model import Action
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.routes.models import ProjectInPath
from contextbase.sessions.environments import ProjectEnvironment
from contextbase.wire.environment import EnvironmentBody, EnvironmentView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/projects", tags=["projects"], responses=problem_answers(404))


@router.get("/{project}/environment")
async def show(project: ProjectInPath, caller: AuthenticatedCaller, services: AuthenticatedServices) -> EnvironmentView:
    """The image and the setup script of a project's sessions."""
    project_id = await services.projects.id_of(caller, project)
    return _view(await services.sessions.environments.get(caller, project_id))


@router.put("/{project}/environment")
async def replace(
    project: ProjectInPath, body: EnvironmentBody, caller: AuthenticatedCaller, services: AuthenticatedServices
) -> EnvironmentView:
    """Set both, for sandboxes that are made from now on. Needs 'admin'."""
    project_id = await services.projects.id_of(caller, project, action=Action.ADMIN)
    wanted = ProjectEnvironment(image=body.image, setup=body.setup)
    return _view(await services.sessions.environments.replace(caller, project_id, wanted))


def _view(environment: ProjectEnvironment) -> EnvironmentView:
    return EnvironmentView(image=environment.image, setup=environment.setup, key=environment.key)
