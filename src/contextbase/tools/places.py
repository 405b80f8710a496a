"""Where a call works: decided by the caller's grant and what its program chose, never by an argument."""

from contextbase.db.ttl_cache import TtlCache
from contextbase.errors import InvalidInput
from contextbase.files.ports import Place
from contextbase.files.service import FileService
from contextbase.identity.model import Action
from contextbase.ids import ProjectId
from contextbase.storage.projects import ProjectService
from contextbase.tools.model import ToolPlace, ToolRequest
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.place_paths import WHOLE_PROJECT, PlacePaths
from contextbase.workspaces.service import WorkspaceService

__all__ = ["ToolPlaces", "place_files"]

_MOST_NAMED = 5


class ToolPlaces:
    def __init__(self, *, projects: ProjectService, workspaces: WorkspaceService) -> None:
        self._projects = projects
        self._workspaces = workspaces
        self._known: TtlCache[tuple[object, ...], tuple[ProjectId, str]] = TtlCache()

    async def find(self, request: ToolRequest) -> ToolPlace:
        """Raises `InvalidInput`, with what to do, if the grant is for several projects and none is chosen."""
        project_id, name = await self.project(request)
        acting, record = await self._workspaces.opened(request.caller, NamedWorkspace(project_id, request.agent))
        return ToolPlace(
            caller=request.caller,
            acting=acting,
            agent=request.agent,
            project_id=project_id,
            project=name,
            paths=WHOLE_PROJECT if record is None else record.paths,
            base=None if record is None else record.base,
            workspace_id=None if record is None else record.id,
        )

    async def project(self, request: ToolRequest) -> tuple[ProjectId, str]:
        """Of the place, its id and name; it does not matter which machine holds the workspace."""
        caller = request.caller
        rights = caller.grant.rights
        key = (caller.grant.project_id, None if rights is None else rights.person, request.project)
        known = self._known.get(key)
        if known is None:
            known = await self._looked_up(request)
            self._known.put(key, known)
        caller.require(Action.READ, known[0])
        return known

    async def paths(self, request: ToolRequest) -> PlacePaths:
        """How the caller's workspace names paths; it does not matter which machine holds it."""
        project_id, _ = await self.project(request)
        _, record = await self._workspaces.opened(
            request.caller, NamedWorkspace(project_id, request.agent), anywhere=True
        )
        return WHOLE_PROJECT if record is None else record.paths

    async def _looked_up(self, request: ToolRequest) -> tuple[ProjectId, str]:
        caller, only = request.caller, request.caller.grant.project_id
        if request.project is not None or only is not None:
            found = await self._projects.find(caller, request.project or str(only))
            return found.id, found.name
        projects = await self._projects.list(caller, limit=_MOST_NAMED + 1)
        if len(projects) == 1:
            return projects[0].id, projects[0].name
        if not projects:
            raise InvalidInput("There is no project yet. Ask somebody to make one: `contextbase project create NAME`.")
        names = ", ".join(project.name for project in projects[:_MOST_NAMED])
        more = " and more" if len(projects) > _MOST_NAMED else ""
        raise InvalidInput(
            f"Your token is for several projects ({names}{more}), so the tools do not know where to work, and you "
            "cannot choose. Ask whoever set you up to connect with `contextbase mcp --project NAME`, with the header "
            "X-Contextbase-Project: NAME, or with a token of one project: `contextbase token create AGENT "
            "--project NAME`."
        )


def place_files(files: FileService, place: ToolPlace) -> Place:
    """The files there."""
    if place.is_workspace:
        return files.workspace(place.caller, place.workspace)
    return files.project(place.acting, place.project_id)
