"""Knowledge bases: folders of an app's tree with a name and tags, of the app, of a project or of a user."""

from collections.abc import Collection
from dataclasses import dataclass

from contextbase.audit.repository import AuditRepository
from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.model import App, ConfigScope, KnowledgeBase
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.rights import require_management
from contextbase.catalog.service import AppService
from contextbase.db.database import Connection, Database
from contextbase.errors import NotFound
from contextbase.identity.model import Caller
from contextbase.ids import Clock, TreePath, new_uuid
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
    audit: AuditRepository
    clock: Clock

    async def effective(
        self, caller: Caller, name: str, project: str | None, tags: Collection[str] | None = None
    ) -> tuple[AppPlace, list[KnowledgeBase]]:
        """The union of the app's, the project's and the caller's own; with any of the tags, if some are given."""
        async with self.database.connection() as connection:
            app = (await self.apps.entry(connection, caller, name)).app
            place = await self.apps.place(connection, app, project, caller.principal.name)
            found = await self.repository.knowledge_bases(
                connection, app.id, place.project, caller.principal.id, tags or None
            )
        return place, found

    async def put(
        self,
        caller: Caller,
        name: str,
        layer: ConfigLayer,
        project: str | None,
        base: str,
        *,
        description: str = "",
        tags: Collection[str] = (),
    ) -> tuple[AppPlace, KnowledgeBase]:
        """Make it, or change its description and tags. Its files are changed as any others."""
        async with self.database.transaction() as connection:
            app, place, scope = await self._scope(connection, caller, name, layer, project)
            made = KnowledgeBase(
                layer=layer, project=scope.project, name=base, description=description, tags=tuple(sorted(set(tags)))
            )
            await self.repository.put_knowledge_base(connection, new_uuid(), app.id, scope, made)
            await self._note(connection, caller, app, "app.kb.put", f"Set the knowledge base '{base}'.", scope=scope)
        return place, made

    async def delete(self, caller: Caller, name: str, layer: ConfigLayer, project: str | None, base: str) -> None:
        """Take it from the list; its files stay."""
        async with self.database.transaction() as connection:
            app, _, scope = await self._scope(connection, caller, name, layer, project)
            if not await self.repository.delete_knowledge_base(connection, app.id, scope, base):
                raise NotFound(f"There is no knowledge base '{base[:100]}' in this layer.")
            await self._note(
                connection, caller, app, "app.kb.delete", f"Removed the knowledge base '{base}'.", scope=scope
            )

    async def _scope(
        self, connection: Connection, caller: Caller, name: str, layer: ConfigLayer, project: str | None
    ) -> tuple[App, AppPlace, ConfigScope]:
        app = (await self.apps.entry(connection, caller, name)).app
        place = await self.apps.place(connection, app, project, caller.principal.name)
        scope = ConfigScope.of(layer, place.project, caller.principal)
        require_management(caller, app, Right.MANAGE_KB, scope)
        return app, place, scope

    async def _note(
        self, connection: Connection, caller: Caller, app: App, action: str, summary: str, *, scope: ConfigScope
    ) -> None:
        now, (layer, project, _) = self.clock.now(), scope.key
        await self.audit.note(
            connection, app.project_id, action, summary, at=now, by=caller.actor, layer=layer, project=project
        )
