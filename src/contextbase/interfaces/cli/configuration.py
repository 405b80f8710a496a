"""`contextbase config`: every setting, its value and where it came from."""

import os

from rich.markup import escape
from rich.text import Text

from contextbase.config import read_settings_file, unknown_variables
from contextbase.interfaces.cli.connection import Data, settings_for
from contextbase.interfaces.cli.output import Json, console, error_console, errors_shown, print_hanging, print_json

__all__ = ["config"]


@errors_shown
def config(data: Data = None, as_json: Json = False) -> None:
    """List every setting: its environment variable, value, source and meaning."""
    settings = settings_for(data)
    environment = dict(os.environ)
    rows = settings.listing(environment=environment, file_values=read_settings_file(settings.data))
    unknown = unknown_variables(environment)
    if as_json:
        print_json(
            {"settings": [{name: getattr(row, name) for name in row.__slots__} for row in rows], "unknown": unknown}
        )
        return
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            console.print(f"\n[bold underline]{group}[/]", highlight=False)
        source = "" if row.source == "default" else f" [dim](from {row.source})[/]"
        console.print(f"[bold]{row.variable}[/] = {escape(row.value)}{source}", highlight=False, soft_wrap=True)
        print_hanging(Text("    "), row.description, style="dim")
    for name in unknown:
        error_console.print(f"[yellow]warning:[/] {name} is set, but contextbase has no such setting.")
