"""`contextbase watch`"""

import sys
from typing import Annotated

import typer
from rich.text import Text

from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.options import PathFilter
from contextbase.interfaces.cli.output import Json, console, errors_shown, on_one_line, subject
from contextbase.wire.feed import CommitItem, FeedItemView

__all__ = ["watch"]

_SIGN = {"created": "+", "changed": "~", "renamed": ">", "deleted": "-"}
_STYLE = {"created": "green", "changed": "yellow", "renamed": "cyan", "deleted": "red"}


@errors_shown
def watch(
    project: Project = None,
    path: PathFilter = None,
    after: Annotated[
        str | None,
        typer.Option(
            "--after",
            metavar="CURSOR",
            help="Continue after this cursor; `start`: the first commit.",
            show_default=False,
        ),
    ] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Print changes as they land, until Ctrl-C. With --json, one line each, with its cursor."""
    with connect(data) as client:
        for received in client.feed.follow(named(project), path=path, after=after):
            if as_json:
                body = received.item.model_dump_json()
                sys.stdout.write(f'{{"cursor":"{received.cursor}",{body[1:]}\n')
                sys.stdout.flush()
            else:
                for line in _lines(received.item):
                    console.print(line, highlight=False, soft_wrap=True)


def _lines(item: FeedItemView) -> list[Text]:
    when = f"{item.at.astimezone():%H:%M:%S}"
    who = item.author.name if item.author else "contextbase"
    if not isinstance(item, CommitItem):
        return [Text.assemble((when, "dim"), f"  {item.kind}  {who}  {on_one_line(item.path or '')}")]
    lines = [Text.assemble((when, "dim"), "  ", (str(item.seq), "bold"), f"  {who}  {subject(item.message)}")]
    for change in item.changes:
        moved = f"{change.previous_path} -> " if change.previous_path else ""
        lines.append(Text(f"  {_SIGN[change.action]} {on_one_line(moved + change.path)}", style=_STYLE[change.action]))
    lines += [
        Text(f"  ? {on_one_line(aside.path)} ({aside.reason.replace('_', ' ')})", style="magenta")
        for aside in item.set_aside
    ]
    if item.left_off:
        lines.append(Text(f"  … and {item.left_off} more"))
    return lines
