"""The query parameter `project`, a name or an id, as routes get it: the id of a project that the caller may use."""

from collections.abc import Awaitable, Callable
from typing import Annotated

from fastapi import Depends, Query

from contextbase.identity.model import Action
from contextbase.ids import ProjectId
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.wire.commit import ProjectName

__all__ = ["ProjectFilter", "ProjectToAdminister", "ProjectToRead", "ProjectToWrite"]


def _project_to(action: Action) -> Callable[..., Awaitable[ProjectId]]:
    async def project_id(
        project: Annotated[ProjectName, Query()], caller: AuthenticatedCaller, services: AuthenticatedServices
    ) -> ProjectId:
        return await services.projects.id_of(caller, project, action=action)

    return project_id


async def _project_filter(
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    project: Annotated[ProjectName | None, Query(description="Left out: all you may see.")] = None,
) -> ProjectId | None:
    return None if project is None else await services.projects.id_of(caller, project)


ProjectFilter = Annotated[ProjectId | None, Depends(_project_filter)]
ProjectToRead = Annotated[ProjectId, Depends(_project_to(Action.READ))]
ProjectToWrite = Annotated[ProjectId, Depends(_project_to(Action.WRITE))]
ProjectToAdminister = Annotated[ProjectId, Depends(_project_to(Action.ADMIN))]
