"""Knowledge bases: folders of an app's tree with a name and tags, of the app, of a project or of a user."""

from collections.abc import Collection
from dataclasses import dataclass

from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.model import AppLayer, KnowledgeBase
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.service import AppService
from contextbase.db.database import Database
from contextbase.errors import NotFound
from contextbase.identity.model import Caller
from contextbase.ids import TreePath, new_uuid
from contextbase.role_vocabulary import Right
from contextbase.wire.agent_config import ConfigLayer

__all__ = ["KnowledgeBases", "folder_of"]


def folder_of(place: AppPlace, base: KnowledgeBase) -> TreePath:
    """Where its files are in the app's tree."""
    if base.layer is ConfigLayer.USER:
        return place.user_files / "kb" / base.name
    return (place.app_kb if base.layer is ConfigLayer.APP else place.project_kb) / base.name


@dataclass(frozen=True, kw_only=True, slots=True)
class KnowledgeBases:
    database: Database
    repository: AppRepository
    apps: AppService

    async def effective(
        self, caller: Caller, name: str, project: str | None, tags: Collection[str] | None = None
    ) -> tuple[AppPlace, list[KnowledgeBase]]:
        """The union of the app's, the project's and the caller's own; with any of the tags, if some are given."""
        async with self.database.connection() as connection:
            app, place = await self.apps.entry_at(connection, caller, name, project)
            found = await self.repository.knowledge_bases(
                connection, app.id, place.project, caller.principal.id, tags or None
            )
        return place, found

    async def put(
        self, caller: Caller, layer: AppLayer, base: str, *, description: str = "", tags: Collection[str] = ()
    ) -> tuple[AppPlace, KnowledgeBase]:
        """Make it, or change its description and tags. Its files are changed as any others."""
        async with self.database.transaction() as connection:
            app, place, scope = await self.apps.managed_layer(connection, caller, layer, right=Right.MANAGE_KB)
            made = KnowledgeBase(
                layer=layer.kind,
                project=scope.project,
                name=base,
                description=description,
                tags=tuple(sorted(set(tags))),
            )
            await self.repository.put_knowledge_base(connection, new_uuid(), app.id, scope, made)
            await self.apps.note(
                connection, caller, app, "app.kb.put", f"Set the knowledge base '{base}'.", scope=scope
            )
        return place, made

    async def delete(self, caller: Caller, layer: AppLayer, base: str) -> None:
        """Take it from the list; its files stay."""
        async with self.database.transaction() as connection:
            app, _, scope = await self.apps.managed_layer(connection, caller, layer, right=Right.MANAGE_KB)
            if not await self.repository.delete_knowledge_base(connection, app.id, scope, base):
                raise NotFound(f"There is no knowledge base '{base[:100]}' in this layer.")
            await self.apps.note(
                connection, caller, app, "app.kb.delete", f"Removed the knowledge base '{base}'.", scope=scope
            )
