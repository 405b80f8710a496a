"""`contextbase log`"""

from collections.abc import Iterator
from itertools import islice
from typing import Annotated

import typer
from rich.text import Text

from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.graph import Drawn, Forked, draw
from contextbase.interfaces.cli.identifiers import short_id
from contextbase.interfaces.cli.options import By, Limit, Run
from contextbase.interfaces.cli.output import on_one_line, subject
from contextbase.interfaces.cli.paging import every_page
from contextbase.interfaces.cli.phrases import local_time
from contextbase.sdk import Client
from contextbase.wire.history import LogChangeView, LogEntryView

__all__ = ["change_line", "commit_line", "log"]

_CHANGES_SHOWN = 10
_STYLES = {"added": "green", "deleted": "red", "renamed": "cyan", "superseded": "magenta", "in_review": "magenta"}
_LANES = "yellow"


@command
def log(
    client: Client,
    path: Annotated[
        str | None,
        typer.Argument(
            help="Only commits that changed the file at this path, also under earlier names.",
            show_default=False,
            autocompletion=complete_path,
        ),
    ] = None,
    by: By = None,
    run: Run = None,
    graph: Annotated[
        bool, typer.Option("--graph", help="Draw where writers worked in parallel and were merged.")
    ] = False,
    limit: Limit = 20,
    *,
    project: NamedProject,
) -> CommandResult:
    """Show commits, newest first."""
    pages = every_page(
        lambda before: client.log(project, path=path, principal=by, run=run, before=before, limit=min(limit, 1000))
    )
    commits = list(islice((commit for page in pages for commit in page.commits), limit))
    if not commits:
        return CommandResult(commits, _nothing(path=path, by=by, run=run))
    return CommandResult(commits, _graph(commits) if graph else (line for commit in commits for line in _lines(commit)))


def _nothing(*, path: str | None, by: str | None, run: str | None) -> str:
    if path or by or run:
        return "No commits match."
    return "There are no commits that you may see. Make one: contextbase put FILE PATH"


def _lines(commit: LogEntryView) -> Iterator[Text]:
    yield commit_line(commit)
    yield from map(change_line, commit.changes[:_CHANGES_SHOWN])
    if commit.change_count > _CHANGES_SHOWN:
        yield Text(f"    … and {commit.change_count - _CHANGES_SHOWN:,} more")


def change_line(change: LogChangeView) -> Text:
    before = f" (was {change.path_before})" if change.path_before else ""
    what = f"{change.what.replace('_', ' '):10}"
    kept = f"  (kept as {short_id(change.side_version_id)})" if change.side_version_id else ""
    return Text.assemble("    ", (what, _STYLES.get(change.what, "")), f" {on_one_line(change.path + before)}{kept}")


def commit_line(commit: LogEntryView) -> Text:
    author = commit.author
    run = f"  [{commit.run}]" if commit.run else ""
    return Text.assemble(
        (str(commit.seq), "bold yellow"),
        f"  {local_time(author.at, seconds=True)}  {author.principal}  {subject(author.message)}",
        run,
    )


def _graph(commits: list[LogEntryView]) -> Iterator[Text]:
    lanes = draw([Forked(seq=commit.seq, forks=tuple(commit.forks)) for commit in commits])
    for commit, drawn in zip(commits, lanes, strict=True):
        yield from (Text(row, style=_LANES) for row in drawn.above)
        yield from _beside(drawn, list(_lines(commit)))


def _beside(drawn: Drawn, lines: list[Text]) -> Iterator[Text]:
    """The commit's own lines, to the right of the lanes."""
    lefts = [drawn.commit, *drawn.below]
    lefts += [drawn.margin] * (len(lines) - len(lefts))
    width = max(map(len, lefts)) + 1
    lines += [Text()] * (len(lefts) - len(lines))
    for left, line in zip(lefts, lines, strict=True):
        yield Text.assemble((left.ljust(width) if line else left, _LANES), line)
