"""`contextbase blame`"""

from collections.abc import Iterator
from typing import Annotated, Final

import typer
from rich.text import Text

from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.output import subject, visible
from contextbase.interfaces.cli.phrases import local_time
from contextbase.sdk import Client
from contextbase.wire.blame import BlameView, OriginView

__all__ = ["blame"]

_COLOURS: Final = ("cyan", "yellow", "green", "magenta", "blue", "bright_red")


@command
def blame(
    client: Client,
    path: Annotated[
        str,
        typer.Argument(metavar="PATH", help="A file in the project.", show_default=False, autocompletion=complete_path),
    ],
    at: Annotated[str, typer.Option("--at", metavar="REF", help="The snapshot to look at.")] = "head",
    values: Annotated[
        bool, typer.Option("--values", help="Show values (JSON, YAML, TOML) or cells (notebooks) instead of lines.")
    ] = False,
    *,
    project: NamedProject,
) -> CommandResult:
    """Show which commit each line of a file comes from, and who made it."""
    found = _whole(client, project, path, at, values=values)
    return CommandResult(found, _lines(found))


def _whole(client: Client, project: str, path: str, at: str, *, values: bool) -> BlameView:
    found = client.history.blame(project, path, at=at, by="parts" if values else "lines")
    page = found
    while page.next_line is not None:  # the version that was found first, whatever happens meanwhile
        page = client.history.blame(project, path, at=str(found.seq), first=page.next_line)
        found.lines += page.lines
    return found.model_copy(update={"next_line": None})


def _lines(found: BlameView) -> Iterator[Text]:
    origins = {origin.number: origin for origin in found.origins}
    whose = max((len(origin.author.principal) for origin in found.origins), default=0)
    places = max((len(part.pointer) for part in found.parts), default=0)
    last = found.lines[-1] if found.lines else None
    digits = len(str(last.first + len(last.lines))) if last else 1
    for run in found.lines:
        for offset, line in enumerate(run.lines):
            head = _origin(origins[run.number], whose)
            text = visible(line.rstrip("\r\n"))
            yield Text.assemble(head, (f" {run.first + offset:>{digits}} ", "dim"), text)
    for part in found.parts:
        origin = origins[part.number]
        message = subject(origin.author.message)
        yield Text.assemble(
            _origin(origin, whose), f"  {visible(part.pointer) or '(the whole file)':{places}}  {message}"
        )


def _origin(origin: OriginView, width: int) -> Text:
    colour = _COLOURS[origin.number % len(_COLOURS)]
    text = f"{origin.seq:>6} {origin.author.principal:{width}} {local_time(origin.author.at)}"
    return Text(text, style=colour)
