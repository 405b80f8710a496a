"""`contextbase log`"""

from collections.abc import Iterator
from typing import Annotated

import typer
from rich.text import Text

from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.graph import Drawn, Forked, draw
from contextbase.interfaces.cli.output import (
    Json,
    errors_shown,
    on_one_line,
    print_json,
    print_line,
    print_long,
    subject,
)
from contextbase.sdk import Client
from contextbase.wire.history import LogEntryView

__all__ = ["By", "Limit", "Run", "commit_line", "log"]

Limit = Annotated[int, typer.Option("--limit", "-n", help="At most so many.", min=1)]
By = Annotated[str | None, typer.Option("--by", help="Of this principal, such as agent:indexer.", show_default=False)]
Run = Annotated[str | None, typer.Option("--run", help="Of this run, as its writer named it.", show_default=False)]
_CHANGES_SHOWN = 10
_STYLES = {"added": "green", "deleted": "red", "renamed": "cyan", "superseded": "magenta", "in_review": "magenta"}
_LANES = "yellow"


@errors_shown
def log(
    path: Annotated[str | None, typer.Argument(help="Only of the file at this path, across renames.")] = None,
    by: By = None,
    run: Run = None,
    graph: Annotated[bool, typer.Option("--graph", help="Draw where writers forked off, and were joined.")] = False,
    limit: Limit = 20,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show commits, newest first."""
    with connect(data) as client:
        commits = _commits(client, named(project), path, by, run, limit)
    if as_json:
        print_json(commits)
        return
    if not commits:
        print_line("There are no commits yet that you may see.")
    print_long(_graph(commits) if graph else (line for commit in commits for line in _lines(commit)))


def _commits(
    client: Client, project: str, path: str | None, by: str | None, run: str | None, limit: int
) -> list[LogEntryView]:
    commits: list[LogEntryView] = []
    before = None
    while len(commits) < limit:
        page = client.log(
            project, path=path, principal=by, run=run, before=before, limit=min(limit - len(commits), 1000)
        )
        commits += page.commits
        before = page.next_before
        if before is None:
            break
    return commits


def _lines(commit: LogEntryView) -> Iterator[Text]:
    yield commit_line(commit)
    for change in commit.changes[:_CHANGES_SHOWN]:
        before = f" (was {change.path_before})" if change.path_before else ""
        what = f"{change.what.replace('_', ' '):10}"
        yield Text.assemble("    ", (what, _STYLES.get(change.what, "")), f" {on_one_line(change.path + before)}")
    if commit.change_count > _CHANGES_SHOWN:
        yield Text(f"    … and {commit.change_count - _CHANGES_SHOWN} more")


def commit_line(commit: LogEntryView) -> Text:
    author = commit.author
    run = f"  [{commit.run}]" if commit.run else ""
    return Text.assemble(
        (str(commit.seq), "bold yellow"),
        f"  {author.at:%Y-%m-%d %H:%M:%S}  {author.principal}  {subject(author.message)}",
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
