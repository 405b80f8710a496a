# Generated from aio/apps.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Apps: the store, and who registers and shows them, as a part of the clients: `client.apps`."""

from collections.abc import Sequence
from typing import Final
from urllib.parse import quote

from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.wire.app import (
    AppChangeBody,
    AppCreate,
    AppProjects,
    AppProjectView,
    AppView,
    StoreView,
    VisibilityBody,
)

__all__ = ["Apps"]

_APPS: Final = "/api/v1/apps"


class Apps:
    """Every method that names an app raises `NotFound` if you may not see it."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    def store(self) -> StoreView:
        """The apps that you may see, whether you may use each, and why."""
        return self._connection.read(StoreView, f"{_APPS}/store")

    @checked
    def register(self, name: str, *, title: str = "", description: str = "", icon: str = "") -> AppView:
        """Make an app with a tree of its own, the project `app-NAME`. Needs a token that allows 'admin' for the whole
        server. Raises `Conflict` if the name is taken."""
        body = AppCreate(name=name, title=title, description=description, icon=icon)
        return self._connection.call(AppView, "POST", _APPS, body)

    @checked
    def get(self, name: str) -> AppView:
        """Its `visibility` is for those who may change it."""
        return self._connection.read(AppView, _path(name))

    @checked
    def change(
        self,
        name: str,
        *,
        title: str | None = None,
        description: str | None = None,
        icon: str | None = None,
        enabled: bool | None = None,
        owner: str | None = None,
    ) -> AppView:
        """None leaves a field as it is."""
        body = AppChangeBody(title=title, description=description, icon=icon, enabled=enabled, owner=owner)
        return self._connection.call(AppView, "PATCH", _path(name), body)

    @checked
    def set_visibility(
        self,
        name: str,
        *,
        departments: Sequence[str] = (),
        roles: Sequence[str] = (),
        members: Sequence[str] = (),
    ) -> AppView:
        """To whom the app is shown from now on: members of these departments, who has one of these roles, and these
        users. Without any it is shown to those who manage it alone."""
        body = VisibilityBody(departments=list(departments), roles=list(roles), members=list(members))
        return self._connection.call(AppView, "PUT", f"{_path(name)}/visibility", body)

    @checked
    def projects(self, name: str) -> AppProjects:
        """The projects of the app, beside `default`."""
        return self._connection.read(AppProjects, f"{_path(name)}/projects")

    @checked
    def set_project(self, name: str, project: str, description: str = "") -> AppProjectView:
        """Give the app a project, or describe one."""
        body = AppProjectView(name=project, description=description)
        return self._connection.call(AppProjectView, "PUT", f"{_path(name)}/projects", body)


def _path(name: str) -> str:
    return f"{_APPS}/{quote(name, safe='')}"
