"""`contextbase up`, `status`, `login`: the server on this machine."""

import asyncio
import os
import signal
from typing import Annotated

import typer
from rich.markup import escape

from contextbase import __version__
from contextbase.data_folder import DataFolder
from contextbase.errors import NotFound, Unavailable
from contextbase.interfaces.cli.connection import Data, connect, settings_for
from contextbase.interfaces.cli.output import Json, console, errors_shown, print_json
from contextbase.logs import configure_logs

__all__ = ["login", "status", "up"]


@errors_shown
def up(
    data: Data = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0: any free one. Default: 8787.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    as_json: Json = False,
) -> None:
    """Start the server, with its embedded database unless CONTEXTBASE_DATABASE_URL is set. Ctrl-C stops both."""
    # The whole server, FastAPI, uvicorn and its loop: only this command needs them.
    import uvloop

    from contextbase.bootstrap import Services
    from contextbase.interfaces.api.server import serve

    settings = settings_for(data, port=port, host=host)
    configure_logs(level=settings.log_level, format=settings.log_format)

    def on_step(step: str) -> None:
        if not as_json:
            console.print(f"[dim]{step} …[/]")

    def on_ready(services: Services, url: str, secret: str | None) -> None:
        if as_json:
            print_json({"url": url, "data": str(services.data.path), "login_url": login_url(url, secret)})
            return
        console.print(f"[bold]contextbase {__version__}[/] is ready at {url}")
        if secret:
            console.print("Log in (shown this once; later: contextbase login):")
            typer.echo(f"  {login_url(url, secret)}")
        console.print(f"[dim]Data in {escape(str(services.data.path))}. Stop with Ctrl-C.[/]")

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, on_step=on_step, on_ready=on_ready))
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    if not as_json:
        console.print("[dim]Stopped.[/]")


@errors_shown
def status(data: Data = None, as_json: Json = False) -> None:
    """Say whether the server runs, where, and whether its parts answer; exit 1 if not."""
    with connect(data) as client:
        readiness = client.readiness()
        version = client.version()
        me = client.me()
    folder = DataFolder(settings_for(data).data)
    server = folder.running_server()
    url = os.environ.get("CONTEXTBASE_URL") or (server.url if server else "")
    if as_json:
        print_json({"url": url, "version": version.version, **readiness.model_dump(), "principal": me.principal})
    else:
        console.print(f"contextbase {version.version} at {url}: {readiness.status.replace('_', ' ')}", highlight=False)
        console.print(f"database  {readiness.database}\nblobs     {readiness.blobs}\nyou       {me.principal}")
    if readiness.status != "ready":
        raise typer.Exit(1)


@errors_shown
def login(data: Data = None, as_json: Json = False) -> None:
    """Print an address that logs a browser in as the owner of this machine's server."""
    folder = DataFolder(settings_for(data).data)
    server = folder.running_server()
    if server is None:
        raise Unavailable(f"No server runs in {folder.path}. Start one with `contextbase up`.")
    secret = folder.read_owner_token()
    if secret is None:
        raise NotFound(f"There is no owner's token in {folder.path} that this account may read.")
    if as_json:
        print_json({"login_url": login_url(server.url, secret)})
    else:
        typer.echo(login_url(server.url, secret))


def login_url(url: str, secret: str | None) -> str | None:
    return f"{url}/login?token={secret}" if secret else None
