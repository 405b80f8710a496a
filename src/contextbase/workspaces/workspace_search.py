"""Search in an agent's open workspace, as its folder is now."""

from contextbase.identity.model import Caller
from contextbase.search.model import ContentPage, ContentQuery, NamePage, NameQuery
from contextbase.search.service import SearchService
from contextbase.workspaces.folder_reader import WorkspaceFolderReader
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.service import WorkspaceService

__all__ = ["WorkspaceSearch"]


class WorkspaceSearch:
    """Who may look into a workspace may search it."""

    def __init__(self, *, workspaces: WorkspaceService, search: SearchService) -> None:
        self._workspaces = workspaces
        self._search = search

    async def contents(
        self,
        caller: Caller,
        named: NamedWorkspace,
        query: ContentQuery,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> ContentPage:
        """Lines that match: see `SearchService.contents_with_folder`."""
        folder = await self._reader(caller, named)
        return await self._search.contents_with_folder(
            caller, named.project_id, folder, query, cursor=cursor, limit=limit
        )

    async def names(
        self,
        caller: Caller,
        named: NamedWorkspace,
        query: NameQuery,
        *,
        cursor: str | None = None,
        limit: int = 100,
    ) -> NamePage:
        """Files and links by name."""
        folder = await self._reader(caller, named)
        return await self._search.names_with_folder(named.project_id, folder, query, cursor=cursor, limit=limit)

    async def _reader(self, caller: Caller, named: NamedWorkspace) -> WorkspaceFolderReader:
        record, look = await self._workspaces.status(caller, named)
        provider = (await self._workspaces.node.site()).provider
        return WorkspaceFolderReader(look.found, await provider.work_folder(record.id))
