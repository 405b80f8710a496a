"""What a shell completes: names of projects, and paths in one. Quick, and silent when nothing can be found out."""

import os
import threading
from collections.abc import Callable
from contextlib import suppress
from contextvars import copy_context
from typing import Final

import typer

__all__ = ["complete_path", "complete_project"]

_LONGEST_SECONDS: Final = 2.0
_MOST: Final = 200


def complete_project(ctx: typer.Context, incomplete: str) -> list[str]:
    return _answered_in_time(lambda: _projects(ctx, incomplete))


def complete_path(ctx: typer.Context, incomplete: str) -> list[str]:
    return _answered_in_time(lambda: _paths(ctx, incomplete))


def _answered_in_time(find: Callable[[], list[str]]) -> list[str]:
    """What was found; nothing after an error or too long a time: a shell shows neither."""
    found: list[str] = []

    def look() -> None:
        with suppress(Exception):  # whatever it is, a person who presses Tab must not see it
            found.extend(find()[:_MOST])

    looking = threading.Thread(target=copy_context().run, args=(look,), daemon=True)  # it knows of --server
    looking.start()
    looking.join(_LONGEST_SECONDS)
    return list(found) if not looking.is_alive() else []


def _projects(ctx: typer.Context, incomplete: str) -> list[str]:
    from contextbase.interfaces.cli.connection import address  # it offers these completions itself
    from contextbase.sdk import Client

    with Client(*address(ctx.params.get("data")), timeout_seconds=_LONGEST_SECONDS, retry_seconds=0) as client:
        return [each.name for each in client.projects.list(limit=1000).projects if each.name.startswith(incomplete)]


def _paths(ctx: typer.Context, incomplete: str) -> list[str]:
    """What is in the folder that is named so far; folders end with a slash."""
    from contextbase.interfaces.cli.connection import found_server
    from contextbase.sdk import Client
    from contextbase.servers.workspace_here import workspace_here

    server = found_server(ctx.params.get("data"))
    project = ctx.params.get("project") or os.environ.get("CONTEXTBASE_PROJECT")
    if not project:
        here = workspace_here(server)
        if here is None:
            return []
        project = here.project_id
    folder = incomplete.rpartition("/")[0]
    with Client(server.url, server.token, timeout_seconds=_LONGEST_SECONDS, retry_seconds=0) as client:
        page = client.checkout(project, prefix=folder or None, recursive=False)
    names = (entry.path + "/" if entry.kind == "directory" else entry.path for entry in page.entries)
    return [name for name in names if name.startswith(incomplete)]
