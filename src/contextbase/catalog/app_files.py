"""Files of an app for people: what they manage, what everybody who uses it may read, and what is their own.

No role reaches an app's tree by itself. Who may do what in which part of it is asked here; then the app's own principal
does it, on behalf of whoever asked, in that part alone.
"""

from dataclasses import dataclass
from typing import Final

from contextbase.audit.repository import AuditRepository
from contextbase.catalog.model import App
from contextbase.catalog.rights import unknown_app
from contextbase.catalog.service import AppService
from contextbase.catalog.tree_access import AppTreeAccess
from contextbase.db.database import Connection, Database
from contextbase.errors import Forbidden, NotFound
from contextbase.identity.authorization import decide
from contextbase.identity.model import Action, Caller, Grant, GrantSource
from contextbase.identity.roles import RoleScope
from contextbase.ids import Clock, ProjectId, TreePath
from contextbase.role_vocabulary import Right

__all__ = ["AppFileAccess", "AppFileArea", "OpenedAppFiles", "area_of"]

_OF_USERS: Final = ("files", "session")


@dataclass(frozen=True, kw_only=True, slots=True)
class AppFileArea:
    """A part of an app's tree, and what is asked about it. Any of the pairs is enough."""

    folder: TreePath
    reading: tuple[tuple[Right, RoleScope], ...]
    editing: tuple[tuple[Right, RoleScope], ...]
    login: str | None = None  # whose own it is


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedAppFiles:
    caller: Caller
    project_id: ProjectId


def area_of(app: str, path: TreePath) -> AppFileArea | None:
    """None for a path that no file of an app has; secrets have none, either."""
    of_app, parts = RoleScope.of_app(app), path.parts
    if parts[0] == "registry":
        files = ((Right.BROWSE_FILES, of_app),)
        return AppFileArea(folder=TreePath("registry"), reading=files, editing=((Right.EDIT_FILES, of_app),))
    known = ((Right.USE_APP, of_app), (Right.MANAGE_KB, of_app))
    if parts[0] == "kb":
        return AppFileArea(folder=TreePath("kb"), reading=known, editing=((Right.MANAGE_KB, of_app),))
    if parts[0] != "project" or len(parts) < 3:
        return None
    if parts[2] == "kb":
        of_project = RoleScope.of_app_project(app, parts[1])
        managed = ((Right.MANAGE_KB, of_app), (Right.MANAGE_KB, of_project))
        folder = TreePath.stored("/".join(parts[:3]))
        return AppFileArea(folder=folder, reading=(*known, *managed), editing=managed)
    if len(parts) < 4 or parts[3] not in _OF_USERS:
        return None
    own = RoleScope.of_user(parts[2])
    return AppFileArea(
        folder=TreePath.stored("/".join(parts[:4])),
        reading=((Right.BROWSE_FILES, own),),
        editing=((Right.EDIT_FILES, own),),
        login=parts[2],
    )


@dataclass(frozen=True, kw_only=True, slots=True)
class AppFileAccess:
    database: Database
    apps: AppService
    tree_access: AppTreeAccess
    audit: AuditRepository
    clock: Clock

    async def opened(self, caller: Caller, name: str, path: TreePath, *, edit: bool) -> OpenedAppFiles:
        """To read or change what is in the path's part of the tree. `NotFound` for what the caller may not see, whether
        it is there or not; `Forbidden` for what may be seen and not changed."""
        async with self.database.transaction() as connection:
            app = (await self.apps.entry(connection, caller, name)).app
            area = area_of(name, path)
            if area is None or not _allows(caller, area.reading):
                raise NotFound(f"There is nothing at {path} in the app '{name}' that you may see.")
            if edit and not _allows(caller, area.editing):
                raise Forbidden(f"You may read {area.folder} of the app '{name}', and not change it.")
            acting = await self.tree_access.principal(connection, app)
            if acting is None:
                raise unknown_app(name)
            if area.login is not None and not caller.principal.is_user(area.login):
                summary = f"Looked into the files of {area.login} in the app '{name}'."
                await self._note(connection, caller, app, summary, path)
        actions = frozenset({Action.READ, Action.WRITE}) if edit else frozenset({Action.READ})
        grant = Grant(source=GrantSource.CHORE, actions=actions, project_id=app.project_id, path_prefix=area.folder)
        narrowed = Caller(
            principal=acting,
            grant=grant,
            way_in=caller.way_in,
            on_behalf_of=caller.principal,
            origin=caller.origin,
            trace_id=caller.trace_id,
        )
        return OpenedAppFiles(caller=narrowed, project_id=app.project_id)

    async def _note(self, connection: Connection, caller: Caller, app: App, summary: str, path: TreePath) -> None:
        await self.audit.note(
            connection,
            app.project_id,
            "app.files.open",
            summary,
            at=self.clock.now(),
            by=caller.actor,
            asked=str(path),
        )


def _allows(caller: Caller, asked: tuple[tuple[Right, RoleScope], ...]) -> bool:
    return any(decide(caller, right, scope).allowed for right, scope in asked)
