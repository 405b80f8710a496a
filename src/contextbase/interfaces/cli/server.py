"""`contextbase up`: the server on this machine. `contextbase machine`: a machine for a server elsewhere."""

import asyncio
import signal
from collections.abc import Coroutine
from typing import Annotated, Any

import typer
from rich.markup import escape

from contextbase import __version__
from contextbase.interfaces.cli.connection import Data, settings_for
from contextbase.interfaces.cli.output import Json, console, errors_shown, print_json
from contextbase.logs import configure_logs

__all__ = ["machine", "up"]


@errors_shown
def up(
    data: Data = None,
    port: Annotated[int | None, typer.Option(help="Port to listen on; 0: any free one. Default: 8787.")] = None,
    host: Annotated[str | None, typer.Option(help="Address to listen on. Default: 127.0.0.1.")] = None,
    no_machine: Annotated[
        bool, typer.Option("--no-machine", help="Hold no workspaces: they are on machines of their own.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Start the server, with its embedded database unless CONTEXTBASE_DATABASE_URL is set. Ctrl-C stops both."""
    # The whole server, FastAPI, uvicorn and its loop: only this command needs them.
    from contextbase.interfaces.api.login_codes import CODE_MINUTES
    from contextbase.interfaces.api.server import serve

    settings = settings_for(data, port=port, host=host)
    data_path = settings.data.absolute()
    # People find the login address without looking for it among log lines.
    let_logs_go = configure_logs(level=settings.logs.level, format=settings.logs.format, held_back=not as_json)

    def on_step(step: str) -> None:
        if not as_json:
            console.print(f"[dim]{step} …[/]")

    def on_ready(url: str, login_url: str) -> None:
        if as_json:
            print_json({"url": url, "data": str(data_path), "login_url": login_url})
            return
        console.print(f"[bold]contextbase {__version__}[/] is ready at {url}")
        console.print(f"Log in with a browser (once, within {CODE_MINUTES} minutes; later: contextbase login):")
        typer.echo(f"  {login_url}")
        console.print(f"[dim]Data in {escape(str(data_path))}. Stop with Ctrl-C.[/]", soft_wrap=True)
        let_logs_go()

    _run(serve(settings, is_machine=not no_machine, on_step=on_step, on_ready=on_ready), as_json=as_json)


@errors_shown
def machine(data: Data = None, as_json: Json = False) -> None:
    """Start a machine: it holds workspaces and sandboxes for the servers on the same database. Ctrl-C stops it.

    It takes the same settings as they do (CONTEXTBASE_DATABASE_URL, CONTEXTBASE_BLOBS, CONTEXTBASE_AUDIT_KEY), and a
    data folder of its own."""
    from contextbase.interfaces.api.server import serve_machine

    settings = settings_for(data)
    let_logs_go = configure_logs(level=settings.logs.level, format=settings.logs.format, held_back=not as_json)

    def on_ready(name: str, address: str) -> None:
        if as_json:
            print_json({"name": name, "address": address, "data": str(settings.data)})
            return
        console.print(f"[bold]contextbase {__version__}[/]: the machine {name} is ready at {address}")
        console.print(f"[dim]Data in {escape(str(settings.data))}. Stop with Ctrl-C.[/]", soft_wrap=True)
        let_logs_go()

    _run(serve_machine(settings, on_step=lambda _: None, on_ready=on_ready), as_json=as_json)


def _run(serving: Coroutine[Any, Any, None], *, as_json: bool) -> None:
    import uvloop

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serving)
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    if not as_json:
        console.print("[dim]Stopped.[/]")
