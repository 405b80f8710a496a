# Generated from aio/projects.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Projects, as a part of the clients: `client.projects`."""

import re
from collections.abc import Sequence
from typing import Final

from contextbase.errors import InvalidInput
from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.wire.environment import EnvironmentBody, EnvironmentView
from contextbase.wire.model import EgressHosts
from contextbase.wire.project import NAME_OR_ID, ProjectChange, ProjectCreate, ProjectDetail, ProjectPage, ProjectView

__all__ = ["Projects"]

_PROJECTS: Final = "/api/v1/projects"


class Projects:
    """A project is one versioned tree of files. It is named by its name or its id."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    def create(self, name: str, *, description: str = "") -> ProjectView:
        """Create an empty project. Needs a token that allows 'admin'. Raises `Conflict` if the name is taken."""
        body = ProjectCreate(name=name, description=description)
        return self._connection.call(ProjectView, "POST", _PROJECTS, body)

    @checked
    def list(self, *, after: str = "", limit: int = 100) -> ProjectPage:
        """The projects you may read, by name. Pass the page's `next_after` as `after` for the next page."""
        return self._connection.read(ProjectPage, _PROJECTS, after=after, limit=limit)

    @checked
    def get(self, name_or_id: str) -> ProjectDetail:
        """One project, with its size. Raises `NotFound` if there is none that you may read."""
        route = _route(name_or_id)
        return self._connection.read(ProjectDetail, route)

    @checked
    def change(
        self, name_or_id: str, *, reads_gitignore: bool | None = None, allowed_secrets: Sequence[str] | None = None
    ) -> ProjectView:
        """Change which new files workspaces commit; None leaves a setting as it is. Needs a token that allows 'admin'.
        Raises `NotFound` if there is no such project."""
        allowed = None if allowed_secrets is None else [*allowed_secrets]
        body = ProjectChange(reads_gitignore=reads_gitignore, allowed_secrets=allowed)
        return self._connection.call(ProjectView, "PATCH", _route(name_or_id), body)

    @checked
    def delete(self, name_or_id: str) -> ProjectView:
        """Hide a project and free its name; its history stays stored. Raises `NotFound` if there is none."""
        return self._connection.call(ProjectView, "DELETE", _route(name_or_id))

    @checked
    def environment(self, name_or_id: str) -> EnvironmentView:
        """The image and the setup script of a project's sessions."""
        return self._connection.read(EnvironmentView, f"{_route(name_or_id)}/environment")

    @checked
    def set_environment(self, name_or_id: str, *, image: str | None = None, setup: str = "") -> EnvironmentView:
        """Set both, for sandboxes that are made from now on. Needs a token that allows 'admin'."""
        body = EnvironmentBody(image=image, setup=setup)
        return self._connection.call(EnvironmentView, "PUT", f"{_route(name_or_id)}/environment", body)

    @checked
    def egress(self, name_or_id: str) -> EgressHosts:
        """The hosts that sandboxes of a project may reach. Raises `NotFound` if there is no such project."""
        return self._connection.read(EgressHosts, f"{_route(name_or_id)}/egress")

    @checked
    def set_egress(self, name_or_id: str, hosts: Sequence[str]) -> EgressHosts:
        """Let sandboxes of a project reach these hosts, and no other. Needs a token that allows 'admin'."""
        body = EgressHosts(hosts=[*hosts])
        return self._connection.call(EgressHosts, "PUT", f"{_route(name_or_id)}/egress", body)


def _route(name_or_id: str) -> str:
    if not re.fullmatch(NAME_OR_ID, name_or_id):
        raise InvalidInput(f"{name_or_id[:120]!r} is not a project's name or id.")
    return f"{_PROJECTS}/{name_or_id}"
