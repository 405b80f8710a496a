"""Search in an agent's open workspace, as its folder is now."""

from contextbase.identity.model import Caller
from contextbase.ids import ProjectId
from contextbase.search.model import ContentPage, ContentQuery, NamePage, NameQuery
from contextbase.search.service import SearchService
from contextbase.workspaces.folder_reader import WorkspaceFolderReader
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.service import WorkspaceService

__all__ = ["WorkspaceSearch"]


class WorkspaceSearch:
    """`agent` names whose workspace is meant, None the caller's own. Who may look into it may search it."""

    def __init__(self, *, workspaces: WorkspaceService, search: SearchService) -> None:
        self._workspaces = workspaces
        self._search = search

    async def contents(
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None,
        query: ContentQuery,
        *,
        workspace_id: WorkspaceId | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> ContentPage:
        """Lines that match: see `SearchService.contents_with_folder`."""
        folder = await self._reader(caller, project_id, agent, workspace_id)
        return await self._search.contents_with_folder(caller, project_id, folder, query, cursor=cursor, limit=limit)

    async def names(
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None,
        query: NameQuery,
        *,
        workspace_id: WorkspaceId | None = None,
        cursor: str | None = None,
        limit: int = 100,
    ) -> NamePage:
        """Files and links by name."""
        folder = await self._reader(caller, project_id, agent, workspace_id)
        return await self._search.names_with_folder(project_id, folder, query, cursor=cursor, limit=limit)

    async def _reader(
        self, caller: Caller, project_id: ProjectId, agent: str | None, workspace_id: WorkspaceId | None
    ) -> WorkspaceFolderReader:
        record, look = await self._workspaces.status(caller, project_id, agent, workspace_id=workspace_id)
        provider = (await self._workspaces.node.site()).provider
        return WorkspaceFolderReader(look.found, await provider.work_folder(record.id))
