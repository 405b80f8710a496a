"""Which server and which project a command is about, and the options that say so."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final
from urllib.parse import quote

import typer

from contextbase.data_folder import default_data_folder
from contextbase.errors import ContextbaseError, InvalidInput
from contextbase.interfaces.cli.completion import complete_project
from contextbase.interfaces.cli.named_server import named_server
from contextbase.servers.choice import FoundServer, find_data_folder, find_server
from contextbase.servers.request import get
from contextbase.servers.workspace_here import WorkspaceHere, workspace_here

if TYPE_CHECKING:
    from contextbase.config import Settings
    from contextbase.sdk import Client

__all__ = [
    "LEASE_VARIABLE",
    "NEEDED",
    "At",
    "Data",
    "LeaseOption",
    "NamedProject",
    "Project",
    "address",
    "agent_here",
    "connect",
    "existing_settings",
    "found_server",
    "named",
    "settings_for",
    "snapshot",
]

LEASE_VARIABLE: Final = "CONTEXTBASE_LEASE"


def found_server(data: Path | None = None) -> FoundServer:
    """The server that a command talks to, by its options, the environment and the current folder."""
    return find_server(named_server(), data)


def _project_here(context: typer.Context, project: str | None) -> str | None:
    if project or context.resilient_parsing:
        return project
    here = _workspace(context)
    return None if here is None else here.project_id


def agent_here(context: typer.Context, agent: str | None) -> str | None:
    """The agent of the workspace we are in, unless another is named, or another project."""
    if agent or context.resilient_parsing:
        return agent
    here = _workspace(context)
    if here is None or not _is_about(here, context):
        return None
    return here.agent


def _workspace(context: typer.Context) -> WorkspaceHere | None:
    try:
        return workspace_here(found_server(context.params.get("data")))
    except ContextbaseError:
        return None  # the command meets the same error, and reports it


def _is_about(here: WorkspaceHere, context: typer.Context) -> bool:
    project: str | None = context.params.get("project")
    if project in (None, here.project_id):
        return True
    server = found_server(context.params.get("data"))
    try:
        found = get(server.url, server.token, f"/api/v1/projects/{quote(project, safe='')}")
        return str(found.get("id")) == here.project_id
    except ContextbaseError:
        return False  # the command names the project, too, and reports what is wrong with it


# Eager: an option whose default comes from the server needs to know which server.
Data = Annotated[
    Path | None,
    typer.Option(
        "--data",
        help="Data folder; default: $CONTEXTBASE_DATA or ./.contextbase-data.",
        show_default=False,
        is_eager=True,
    ),
]

_PROJECT: Final = typer.Option(
    "--project",
    "-p",
    envvar="CONTEXTBASE_PROJECT",
    help="The project's name or id. Default: that of the workspace you are in.",
    show_default=False,
    is_eager=True,
    callback=_project_here,
    autocompletion=complete_project,
)
NEEDED: Final = object()

Project = Annotated[str | None, _PROJECT]
NamedProject = Annotated[str, _PROJECT, NEEDED]  # for `command`, which refuses to go on without one

LeaseOption = Annotated[
    int | None,
    typer.Option(
        "--lease",
        metavar="TOKEN",
        envvar=LEASE_VARIABLE,
        help="Only if this lease is still yours.",
        min=1,
        show_default=False,
    ),
]

At = Annotated[
    str | None,
    typer.Option(
        "--at",
        metavar="REF",
        help="As it was: a seq, head~3, a time such as 2026-01-31T12:00:00Z, or a tag.",
        show_default=False,
    ),
]


def snapshot(client: "Client", project: str, at: str | None) -> int | None:
    """The seq that is meant; None: the head, whatever it is by then."""
    if at is None:
        return None
    return int(at) if at.isdecimal() and len(at) < 16 else client.history.resolve(project, at)


def named(project: str | None) -> str:
    """The project a command is about."""
    if not project:
        raise InvalidInput("Say which project: --project NAME, or set CONTEXTBASE_PROJECT.")
    return project


def settings_for(data: Path | None, **overrides: object) -> "Settings":
    """Settings with the data folder a command is about, absolute. The folder may hold nothing yet."""
    from contextbase.config import load_settings  # slow to import, and most commands need no settings

    given = {name: value for name, value in overrides.items() if value is not None}
    if data is None and not os.environ.get("CONTEXTBASE_DATA"):
        data = default_data_folder()
    if data is not None:
        given["data"] = data.absolute()
    return load_settings(**given)


def existing_settings(data: Path | None, **overrides: object) -> "Settings":
    """As `settings_for`, for commands about data that is there already: in the folder named, the one here, or that of
    the server this account runs."""
    return settings_for(find_data_folder(data), **overrides)


def connect(data: Path | None = None) -> "Client":
    """A client for the server a command talks to."""
    from contextbase.sdk import Client  # slow to import, and --help does without

    return Client(*address(data))


def address(data: Path | None = None) -> tuple[str, str]:
    """The URL and token of the server a command talks to."""
    server = found_server(data)
    return server.url, server.token
