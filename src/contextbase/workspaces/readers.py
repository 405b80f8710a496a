"""Who may see what is in a workspace, by its id alone: also once it has ended."""

from uuid import UUID

from contextbase.db.database import Database
from contextbase.identity.model import Action, Caller
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.repository import WorkspaceRepository

__all__ = ["WorkspaceReaders"]


class WorkspaceReaders:
    """A `WorkspaceAuthorizer` of streams: its agent, and who may manage the project and read it."""

    def __init__(self, *, database: Database, registry: WorkspaceRepository) -> None:
        self._database = database
        self._registry = registry

    async def may_read(self, caller: Caller, workspace_id: UUID) -> bool:
        async with self._database.connection() as connection:
            found = await self._registry.by_id(connection, WorkspaceId(int=workspace_id.int))
        grant = caller.grant
        if found is None or not grant.allows(Action.READ, found.project_id):
            return False
        if grant.path_prefix is not None and not f"{found.scope or ''}/".startswith(f"{grant.path_prefix}/"):
            return False
        return found.principal.id == caller.principal.id or caller.administers(found.project_id)
