"""The quick way into the bridge, past the command line's framework, which takes longer to import than all else."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["bridge_options", "run_if_bridge", "start_bridge"]

_OPTIONS: Final = {"--project": "project", "-p": "project", "--agent": "agent", "--server": "server", "--data": "data"}


def bridge_options(arguments: Sequence[str]) -> dict[str, str] | None:
    """The options of `contextbase mcp` as a bridge; None if it is asked for anything else, such as --help."""
    found: dict[str, str] = {}
    left = list(arguments)
    while left:
        name, equals, value = left.pop(0).partition("=")
        option = _OPTIONS.get(name)
        if option is None or (not equals and not left):
            return None
        found[option] = value if equals else left.pop(0)
    return found


def start_bridge(
    *, project: str | None = None, agent: str | None = None, server: str | None = None, data: str | None = None
) -> None:
    """Serve this process's standard input until it ends. Raises `ContextbaseError` if no server is found."""
    import os

    from contextbase.interfaces.mcp.bridge import run_bridge
    from contextbase.servers.choice import find_server
    from contextbase.servers.workspace_here import workspace_here

    folder = None if data is None else Path(data)
    project = project or os.environ.get("CONTEXTBASE_PROJECT")
    headers = {}
    if project is None and agent is None:
        here = workspace_here(find_server(server, folder))
        if here is not None:
            project, agent = here.project_id, here.agent
    if project:
        headers["X-Contextbase-Project"] = project
    if agent:
        headers["X-Contextbase-Agent"] = agent
    run_bridge(lambda: find_server(server, folder), headers)


def run_if_bridge(arguments: Sequence[str]) -> bool:
    """Whether it was the bridge that was asked for; then it has run."""
    options = bridge_options(arguments)
    if options is None:
        return False
    from contextbase.errors import ContextbaseError

    try:
        start_bridge(**options)
    except ContextbaseError as error:
        sys.stderr.write(f"contextbase mcp: {error.message}\n")
        sys.exit(1)
    return True
