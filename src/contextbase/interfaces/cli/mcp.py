"""`contextbase mcp`: agent programs of any make join with it."""

import sys
from pathlib import Path
from typing import Annotated, Any

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.connection import Data, found_server
from contextbase.interfaces.cli.named_server import named_server
from contextbase.interfaces.cli.output import Json, error_console, errors_shown, print_json, print_table
from contextbase.interfaces.mcp.client_settings import CLIENTS, settings_for_client
from contextbase.interfaces.mcp.start import start_bridge
from contextbase.servers.request import get

__all__ = ["mcp"]


@errors_shown
def mcp(
    *,
    project: Annotated[
        str | None,
        typer.Option(
            "--project",
            "-p",
            help="The project to work in. Default: $CONTEXTBASE_PROJECT, that of the workspace you are in, or the one "
            "your token is for.",
            show_default=False,
        ),
    ] = None,
    agent: Annotated[
        str | None, typer.Option(help="Act for this agent; needs 'admin'. Default: yourself.", show_default=False)
    ] = None,
    print_config: Annotated[
        str | None,
        typer.Option(metavar="CLIENT", help=f"Print what to paste: {', '.join(CLIENTS)}.", show_default=False),
    ] = None,
    list_tools: Annotated[bool, typer.Option("--list-tools", help="List the tools that your token allows.")] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Serve the agent tools on standard input and output (MCP), by the server that other commands use."""
    if print_config is not None:
        named = {"--project": project, "--agent": agent, "--server": named_server()}
        options = [word for name, value in named.items() if value for word in (name, value)]
        if data is not None:
            options += ["--data", str(data.absolute())]
        settings = settings_for_client(print_config, options, program=Path(sys.argv[0]))
        if as_json:
            print_json({"client": print_config, "file": settings.file, "text": settings.text})
            return
        if settings.file is not None:  # beside the lines: not every client takes comments
            error_console.print(f"For {settings.file}:", markup=False, highlight=False)
        typer.echo(settings.text)
        return
    if list_tools:
        server = found_server(data)
        _print_tools(get(server.url, server.token, "/api/v1/tools"), as_json=as_json)
        return
    if as_json:
        raise InvalidInput("--json goes with --list-tools and --print-config.")
    start_bridge(project=project, agent=agent, server=named_server(), data=None if data is None else str(data))


def _print_tools(answer: dict[str, Any], *, as_json: bool) -> None:
    if as_json:
        print_json(answer["tools"])
        return
    rows = ((tool["name"], "" if tool["read_only"] else "writes", tool["description"]) for tool in answer["tools"])
    print_table(("TOOL", "", "WHAT IT DOES"), rows, empty="Your token allows none.", whole=("TOOL",))
