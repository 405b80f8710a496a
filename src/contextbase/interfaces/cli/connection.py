"""Which server a command talks to: --url/--token, the environment, or the one that runs in the data folder."""

import os
from pathlib import Path
from typing import Annotated, Final

import typer

from contextbase.config import Settings, load_settings
from contextbase.data_folder import DataFolder, default_data_folder
from contextbase.errors import InvalidInput, Unauthenticated, Unavailable
from contextbase.sdk import Client

__all__ = [
    "LEASE_VARIABLE",
    "At",
    "Data",
    "LeaseOption",
    "Project",
    "address",
    "connect",
    "named",
    "settings_for",
    "snapshot",
]

LEASE_VARIABLE: Final = "CONTEXTBASE_LEASE"

Data = Annotated[
    Path | None,
    typer.Option("--data", help="Data folder; default: $CONTEXTBASE_DATA or ./.contextbase-data.", show_default=False),
]

Project = Annotated[
    str | None,
    typer.Option("--project", "-p", envvar="CONTEXTBASE_PROJECT", help="The project's name or id.", show_default=False),
]

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


def snapshot(client: Client, project: str, at: str | None) -> int | None:
    """The seq that is meant; None: the head, whatever it is by then."""
    if at is None:
        return None
    return int(at) if at.isdecimal() and len(at) < 16 else client.history.resolve(project, at)


def named(project: str | None) -> str:
    """The project a command is about."""
    if not project:
        raise InvalidInput("Say which project: --project NAME, or set CONTEXTBASE_PROJECT.")
    return project


def settings_for(data: Path | None, **overrides: object) -> Settings:
    """Settings with the data folder a command is about, absolute."""
    given = {name: value for name, value in overrides.items() if value is not None}
    if data is None and not os.environ.get("CONTEXTBASE_DATA"):
        data = default_data_folder()
    if data is not None:
        given["data"] = data.absolute()
    return load_settings(**given)


def connect(data: Path | None = None) -> Client:
    """A client for the server a command talks to."""
    return Client(*address(data))


def address(data: Path | None = None) -> tuple[str, str]:
    """$CONTEXTBASE_URL and $CONTEXTBASE_TOKEN, or this machine's server as its owner."""
    url, token = os.environ.get("CONTEXTBASE_URL"), os.environ.get("CONTEXTBASE_TOKEN")
    folder = DataFolder(settings_for(data).data)
    if url is None:
        server = folder.running_server()
        if server is None:
            raise Unavailable(
                f"No server runs in {folder.path}. Start one with `contextbase up`, or set CONTEXTBASE_URL and "
                "CONTEXTBASE_TOKEN to use another."
            )
        url = server.url
        token = token or folder.read_owner_token()
    if not token:
        raise Unauthenticated("Set CONTEXTBASE_TOKEN to a token for this server.")
    return url, token
