"""Puts the commands together. A command's module is imported when the command is used: --help needs none of them."""

import sys
from importlib import import_module
from io import TextIOWrapper
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.main import get_command, get_group

from contextbase import __version__
from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command_table import COMMANDS, Entry
from contextbase.interfaces.cli.help_layout import tidy_help, tidy_option
from contextbase.interfaces.cli.named_server import choose_server
from contextbase.interfaces.cli.output import EXIT_USAGE, report

__all__ = ["app", "main"]


class _Unloaded(TyperCommand):
    """A command as the table has it; the real one takes over when arguments are parsed."""

    def __init__(self, entry: Entry) -> None:
        super().__init__(name=entry.name, help=entry.help, rich_help_panel=entry.panel)
        self._entry = entry

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:
        return self.load().make_context(info_name, args, parent, **extra)

    def load(self) -> Any:
        """The real command, or group of commands."""
        found = getattr(import_module(self._entry.module), self._entry.attribute)
        if isinstance(found, typer.Typer):
            command: Any = get_group(found)
        else:
            alone = typer.Typer(add_completion=False)
            alone.command(self._entry.name)(found)
            command = get_command(alone)
        if self._entry.asks_a_server:
            _take_server(command)
        tidy_help(command)
        return command


class _Commands(TyperGroup):
    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = {entry.name: _Unloaded(entry) for entry in COMMANDS}

    def get_params(self, ctx: Any) -> Any:
        params = super().get_params(ctx)
        for param in params:
            tidy_option(param)
        return params


app = typer.Typer(
    name="contextbase",
    help="A shared, versioned context base for AI agents.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    add_completion=True,
    cls=_Commands,
)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"contextbase {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    del version  # its callback has done the work


def _server_option(
    server: Annotated[
        str | None,
        typer.Option(
            "--server",
            metavar="NAME",
            help="A server of `contextbase servers`; default: $CONTEXTBASE_SERVER, or the one that is found.",
            show_default=False,
            is_eager=True,  # other options take their default from the server
            expose_value=False,
            callback=choose_server,
        ),
    ] = None,
) -> None:
    """Holds the option that commands are given which talk to a server."""


def _take_server(command: Any) -> None:
    """Give a command, or every command of a group, the option --server."""
    if isinstance(command, TyperGroup):
        for child in command.commands.values():
            _take_server(child)
        return
    holder = typer.Typer(add_completion=False)
    holder.command()(_server_option)
    command.params.extend(get_command(holder).params)


def main() -> None:
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, TextIOWrapper):  # not every terminal has our "…", and file names may be any bytes
            stream.reconfigure(errors="backslashreplace")
    if "--json" not in sys.argv:
        app()
    try:
        sys.exit(app(standalone_mode=False))
    except typer.BadParameter as error:
        report(InvalidInput(error.format_message()), as_json=True)
    except typer.TyperException as error:
        report(InvalidInput(str(error)), as_json=True)
    sys.exit(EXIT_USAGE)
