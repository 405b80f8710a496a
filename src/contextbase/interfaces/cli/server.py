"""`contextbase up`: the server on this machine."""

import asyncio
import signal
from typing import Annotated

import typer
from rich.markup import escape

from contextbase import __version__
from contextbase.interfaces.cli.connection import Data, settings_for
from contextbase.interfaces.cli.output import Json, console, errors_shown, print_json
from contextbase.logs import configure_logs

__all__ = ["up"]


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

    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(serve(settings, on_step=on_step, on_ready=on_ready))
    except asyncio.CancelledError:
        raise typer.Exit(128 + signal.SIGTERM) from None
    if not as_json:
        console.print("[dim]Stopped.[/]")
