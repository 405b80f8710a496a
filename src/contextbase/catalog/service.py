"""Apps: registered, described, shown to people. Each change is audited in the chain of the app's own tree."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import asyncpg

from contextbase.audit.repository import AuditRepository
from contextbase.catalog.app_keys import DEFAULT_PROJECT, AppPlace, check_app_project
from contextbase.catalog.model import App, AppChange, AppId, AppLayer, ConfigScope, NewApp, StoreEntry, VisibilityRule
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.rights import manages, require_management, rules_about, seen_entry, unknown_app
from contextbase.catalog.tree_access import AppTreeAccess
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.identity.model import Action, Caller, Principal, PrincipalKind, PrincipalName
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import Clock, new_uuid
from contextbase.role_vocabulary import Right
from contextbase.storage.projects import ProjectService

__all__ = ["AppService"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AppService:
    database: Database
    repository: AppRepository
    identity: IdentityRepository
    projects: ProjectService
    tree_access: AppTreeAccess
    audit: AuditRepository
    clock: Clock

    async def register(self, caller: Caller, new: NewApp) -> App:
        """Make an app with a tree of its own, which nobody but administrators sees until somebody may use it. Raises
        `Conflict` when the name is taken."""
        caller.require(Action.ADMIN)
        app_id, about = AppId(new_uuid()), f"The files of the app '{new.name}'."
        async with self.database.transaction() as connection:
            tree = await self.projects.create_in(connection, caller, f"app-{new.name}", about)
            try:
                await self.repository.insert(connection, app_id, new, caller.principal.id, tree.id)
            except asyncpg.UniqueViolationError:
                raise Conflict(f"There is an app named '{new.name}' already; choose another name.") from None
            app = await self._found(connection, caller, new.name)
            await self.tree_access.close_to_all(connection, app)
            await self.note(connection, caller, app, "app.register", f"Registered the app '{new.name}'.")
        return app

    async def get(self, caller: Caller, name: str) -> StoreEntry:
        """Raises `NotFound` for an app that the caller may not see, whether it exists or not."""
        async with self.database.connection() as connection:
            return await self.entry(connection, caller, name)

    async def store(self, caller: Caller) -> list[StoreEntry]:
        """The apps that the caller may see, by name."""
        caller.require(Action.READ, caller.grant.project_id)
        async with self.database.connection() as connection:
            apps = await self.repository.all(connection, caller.principal.id, rules_about(caller))
        return [entry for app in apps if (entry := seen_entry(caller, app)) is not None]

    async def usable(self, caller: Caller, name: str) -> App:
        """Raises `NotFound` if the caller may not see it, and `Forbidden` if it may not be used."""
        entry = await self.get(caller, name)
        if not entry.can_use:
            raise Forbidden(f"You may not use the app '{name}': {entry.why_used}.")
        return entry.app

    async def change(self, caller: Caller, name: str, change: AppChange) -> App:
        async with self.database.transaction() as connection:
            app = await self.managed(connection, caller, name)
            owner = None if change.owner is None else (await self._user(connection, change.owner)).id
            await self.repository.update(connection, app.id, change, owner)
            changed = [field for field in ("title", "description", "icon", "owner") if getattr(change, field)]
            if change.enabled is not None:
                changed.append("enabled" if change.enabled else "disabled")
            await self.note(connection, caller, app, "app.change", f"Changed the app '{name}'.", changed=changed)
            return await self._found(connection, caller, name)

    async def put_visibility(
        self, caller: Caller, name: str, rules: Collection[VisibilityRule], members: Collection[str]
    ) -> App:
        """To whom the app is shown from now on."""
        async with self.database.transaction() as connection:
            app = await self.managed(connection, caller, name)
            people = [(await self._user(connection, member)).id for member in members]
            await self.repository.put_visibility(connection, app.id, set(rules), set(people))
            summary = f"The app '{name}' is shown by {len(set(rules))} rules and to {len(set(people))} members."
            shown = sorted(map(str, rules))
            await self.note(connection, caller, app, "app.visibility", summary, rules=shown, members=sorted(members))
            return await self._found(connection, caller, name)

    async def members(self, caller: Caller, name: str) -> Sequence[Principal]:
        async with self.database.connection() as connection:
            app = await self.managed(connection, caller, name)
            return await self.repository.members(connection, app.id)

    async def put_project(self, caller: Caller, name: str, project: str, description: str) -> None:
        """A project of the app, with configuration and knowledge of its own."""
        project = check_app_project(project)
        async with self.database.transaction() as connection:
            app = await self.managed(connection, caller, name)
            await self.repository.put_project(connection, app.id, project, description)
            summary = f"The app '{name}' has the project '{project}'."
            await self.note(connection, caller, app, "app.project", summary, project=project)

    async def project_list(self, caller: Caller, name: str) -> list[tuple[str, str]]:
        """(name, description), by name; without `default`, which every app has."""
        async with self.database.connection() as connection:
            app = (await self.entry(connection, caller, name)).app
            return await self.repository.projects(connection, app.id)

    async def place(self, connection: Connection, app: App, project: str | None, login: str) -> AppPlace:
        """Where a user is at work in the app. Raises `NotFound` if the app has no such project."""
        name = check_app_project(project)
        if name != DEFAULT_PROJECT and not await self.repository.has_project(connection, app.id, name):
            raise NotFound(f"The app '{app.name}' has no project '{name}'.")
        return AppPlace(app=app.name, project=name, login=login)

    async def entry(self, connection: Connection, caller: Caller, name: str) -> StoreEntry:
        app = await self.repository.find(connection, name, caller.principal.id)
        entry = None if app is None else seen_entry(caller, app)
        if entry is None:
            raise unknown_app(name)
        return entry

    async def entry_at(
        self, connection: Connection, caller: Caller, name: str, project: str | None
    ) -> tuple[App, AppPlace]:
        """An app that the caller may see, and where the caller is at work in it."""
        app = (await self.entry(connection, caller, name)).app
        return app, await self.place(connection, app, project, caller.principal.name)

    async def managed_layer(
        self, connection: Connection, caller: Caller, layer: AppLayer, *, right: Right
    ) -> tuple[App, AppPlace, ConfigScope]:
        """A layer of the app, if the caller has that right there; users have their own and no other's."""
        app, place = await self.entry_at(connection, caller, layer.app, layer.project)
        scope = ConfigScope.of(layer.kind, place.project, caller.principal)
        require_management(caller, app, right, scope)
        return app, place, scope

    async def managed(self, connection: Connection, caller: Caller, name: str) -> App:
        """Raises `NotFound` for an app that the caller may not see, `Forbidden` for one that others manage."""
        app = (await self.entry(connection, caller, name)).app
        if not manages(caller, app):
            raise Forbidden(f"You may not change the app '{name}'; whoever has '{Right.MANAGE_AGENTCONFIG}' may.")
        return app

    async def _found(self, connection: Connection, caller: Caller, name: str) -> App:
        app = await self.repository.find(connection, name, caller.principal.id)
        if app is None:
            raise unknown_app(name)
        return app

    async def _user(self, connection: Connection, name: str) -> Principal:
        parsed = PrincipalName.parse(name)
        kind = parsed.kind or PrincipalKind.USER
        found = await self.identity.find_principal(connection, kind, parsed.name)
        if found is None:
            raise NotFound(f"There is no {kind}:{parsed.name}.")
        return found

    async def note(
        self,
        connection: Connection,
        caller: Caller,
        app: App,
        action: str,
        summary: str,
        *,
        scope: ConfigScope | None = None,
        **details: object,
    ) -> None:
        """In the audit trail of the app's own tree; with the layer that it is about."""
        now = self.clock.now()
        if scope is not None:
            layer, project, _ = scope.key
            details = {"layer": layer, "project": project, **details}
        await self.audit.note(connection, app.project_id, action, summary, at=now, by=caller.actor, **details)
