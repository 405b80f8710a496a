"""`contextbase rollback, undo, bring-back, purge`: the way back."""

import re
from collections.abc import Iterator
from typing import Annotated, Final
from uuid import UUID

import typer
from rich.text import Text

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.files import what_is_left
from contextbase.interfaces.cli.identifiers import find_id
from contextbase.interfaces.cli.options import DryRun, Message, PathFilter, Yes
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line, print_long, visible
from contextbase.interfaces.cli.phrases import counted
from contextbase.sdk import Client
from contextbase.wire.reverting import PurgeView, RevertingView

__all__ = ["bring_back", "purge", "rollback", "undo"]

_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


@errors_shown
def rollback(
    to: Annotated[
        str | None, typer.Argument(help="The snapshot: a seq, head~3, a time or a tag.", show_default=False)
    ] = None,
    path: Annotated[
        str | None, typer.Argument(help="A file or folder. Default: everything.", show_default=False)
    ] = None,
    number: Annotated[
        int | None,
        typer.Option(
            "--version",
            min=1,
            metavar="N",
            help="Instead of a snapshot: version N of the file at --file.",
            show_default=False,
        ),
    ] = None,
    file: Annotated[str | None, typer.Option("--file", help="The file, with --version.", show_default=False)] = None,
    dry_run: DryRun = False,
    message: Message = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Restore a file, a folder or everything to a snapshot, as a new commit. Later commits stay in history."""
    if (to is None) == (number is None):
        raise InvalidInput("Say what to restore: a snapshot (REF), or --version N with --file PATH.")
    if number is not None and (path or file) is None:
        raise InvalidInput("--version needs --file PATH: the file whose version it is.")
    with connect(data) as client:
        found = client.history.rollback(
            named(project), to, path=path or file, number=number, message=message, dry_run=dry_run
        )
    _report(found, dry_run=dry_run, as_json=as_json, nothing="Nothing to do: it already matches.")


@errors_shown
def undo(
    commits: Annotated[
        list[str] | None,
        typer.Argument(metavar="SEQ|FIRST..LAST", help="The commits to undo.", show_default=False),
    ] = None,
    by: Annotated[
        str | None, typer.Option("--by", metavar="PRINCIPAL", help="Undo everything by agent:NAME or user:NAME.")
    ] = None,
    run: Annotated[str | None, typer.Option("--run", metavar="NAME", help="Undo everything of this run.")] = None,
    first: Annotated[
        int | None, typer.Option("--since", min=1, metavar="SEQ", help="With --by or --run: only from this commit on.")
    ] = None,
    last: Annotated[
        int | None, typer.Option("--until", min=1, metavar="SEQ", help="With --by or --run: only up to this commit.")
    ] = None,
    path: PathFilter = None,
    dry_run: DryRun = False,
    message: Message = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Take back commits, and keep what others did since. Where others built on them, it goes to review."""
    if bool(commits) == bool(by or run):
        raise InvalidInput("Say what to undo: commits (SEQ or FIRST..LAST), or --by PRINCIPAL, --run NAME or both.")
    with connect(data) as client:
        found = client.history.undo(
            named(project),
            principal=by,
            run=run,
            seqs=_seqs(commits) if commits else None,
            first=first,
            last=last,
            path=path,
            message=message,
            dry_run=dry_run,
        )
    _report(found, dry_run=dry_run, as_json=as_json, nothing="Nothing to do: nothing is left of those changes.")


@errors_shown
def bring_back(
    side_version: Annotated[
        str,
        typer.Argument(help="The id of a side version, or its start or end, as `log` shows it.", show_default=False),
    ],
    message: Message = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Replace a file by a version that was set aside (superseded, or in review)."""
    name = named(project)
    with connect(data) as client:
        identity = find_id(
            side_version, what="side version", listed=_side_versions(client, name), see="contextbase log"
        )
        found = client.history.bring_back(name, identity, message=message)
    _report(found, dry_run=False, as_json=as_json, nothing="Nothing to do: it already matches.")


@errors_shown
def purge(
    path: Annotated[
        str | None, typer.Argument(help="Purge everything that ever was at this path.", show_default=False)
    ] = None,
    content: Annotated[
        str | None,
        typer.Option("--hash", metavar="SHA256", help="Purge one content, by its sha256.", show_default=False),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Remove contents from all history for good, such as a leaked secret. Commits and the audit trail stay."""
    name = named(project)
    with connect(data) as client:
        found = client.history.purge(name, path=path, content_hash=content, dry_run=True)
        if not dry_run:
            if not yes and not as_json:
                _show_purge(found)
                typer.confirm("This cannot be undone. Purge?", abort=True)
            elif not yes:
                raise InvalidInput("A purge cannot be undone. With --json it needs --yes.")
            found = client.history.purge(name, path=path, content_hash=content, confirm=name)
    if as_json:
        print_json(found)
    elif dry_run:
        _show_purge(found)
    else:
        print_line(
            f"Purged {counted(len(found.hashes), 'content')}, and deleted {counted(len(found.deleted), 'file')}."
        )


def _side_versions(client: Client, project: str) -> Iterator[tuple[UUID, str]]:
    before = None
    while True:
        page = client.log(project, before=before, limit=1000)
        for commit in page.commits:
            for change in commit.changes:
                if change.side_version_id is not None:
                    yield change.side_version_id, f"{change.path}, commit {commit.seq}"
        before = page.next_before
        if before is None:
            return


def _seqs(texts: list[str]) -> list[int]:
    seqs: list[int] = []
    for text in texts:
        match = re.fullmatch(r"([0-9]{1,15})(?:\.\.([0-9]{1,15}))?", text)
        if match is None:
            raise InvalidInput(f"{text[:80]!r} is not a commit: give its seq, or FIRST..LAST.")
        start = int(match[1])
        end = int(match[2] or start)
        if not start <= end <= start + 10_000:
            raise InvalidInput(f"{text[:80]!r} is not a range of at most 10,000 commits.")
        seqs += range(start, end + 1)
    return seqs


def _report(found: RevertingView, *, dry_run: bool, as_json: bool, nothing: str) -> None:
    if as_json:
        print_json(found)
    elif dry_run:
        _show_preview(found, nothing)
    else:
        for change in found.changes:
            note = f": {change.reason}" if change.status == "refused" else what_is_left(change)
            print_line(f"{change.status.replace('_', ' ')}  {change.result_path or change.path}{note}")
        if found.seqs:
            print_line(f"{'Commit' if len(found.seqs) == 1 else 'Commits'} {', '.join(map(str, found.seqs))}.")
        elif not found.changes:
            print_line(nothing)
    if any(change.status == "refused" for change in found.changes):
        raise typer.Exit(1)


def _show_preview(found: RevertingView, nothing: str) -> None:
    print_long(
        Text(visible(line), style=_COLOURS.get(line[:1], ""))
        for file in found.preview
        for line in file.patch.splitlines()
    )
    for path in found.contested:
        print_line(f"in review  {path}: others built on it")
    if not found.preview and not found.contested:
        print_line(nothing)


def _show_purge(found: PurgeView) -> None:
    where = counted(len(found.projects), "project")
    print_line(f"Would purge {counted(len(found.hashes), 'content')} from the history of {where}.")
    for file in found.deleted:
        print_line(f"delete  {file.path}")
