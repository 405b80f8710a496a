"""`contextbase rollback, undo, bring-back, purge`: the way back."""

import re
from typing import Annotated, Final
from uuid import UUID

import typer
from rich.text import Text

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.files import Message
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line, print_long, visible
from contextbase.wire.going_back import GoingBackView, PurgeView

__all__ = ["bring_back", "purge", "rollback", "undo"]

DryRun = Annotated[bool, typer.Option("--dry-run", "-n", help="Only show what would be done.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}


@errors_shown
def rollback(
    to: Annotated[
        str | None, typer.Argument(help="A seq, head~3, a time, or a tag's name.", show_default=False)
    ] = None,
    path: Annotated[
        str | None, typer.Argument(help="A file or folder; default: everything.", show_default=False)
    ] = None,
    number: Annotated[
        int | None,
        typer.Option("--version", min=1, help="Of the file at --file, in the place of a snapshot.", show_default=False),
    ] = None,
    file: Annotated[str | None, typer.Option("--file", help="With --version: the file.", show_default=False)] = None,
    dry_run: DryRun = False,
    message: Message = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a file, a folder or everything as it was, as a new commit. What came since stays in history."""
    with connect(data) as client:
        found = client.history.rollback(
            named(project), to, path=path or file, number=number, message=message, dry_run=dry_run
        )
    _report(found, dry_run=dry_run, as_json=as_json, nothing="It is so already.")


@errors_shown
def undo(
    commits: Annotated[
        list[str] | None, typer.Argument(metavar="[SEQ | FIRST..LAST]...", help="Commits.", show_default=False)
    ] = None,
    by: Annotated[str | None, typer.Option("--by", help="All that agent:NAME or user:NAME did.")] = None,
    run: Annotated[str | None, typer.Option("--run", help="All that was done in this run.")] = None,
    first: Annotated[
        int | None, typer.Option("--since", min=1, help="With --by or --run: from this commit on.")
    ] = None,
    last: Annotated[int | None, typer.Option("--until", min=1, help="With --by or --run: up to this commit.")] = None,
    path: Annotated[str | None, typer.Option("--path", help="Only a file, or below a folder.")] = None,
    dry_run: DryRun = False,
    message: Message = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Take back what somebody did, and keep what others did since. What they built upon it goes to review."""
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
    _report(found, dry_run=dry_run, as_json=as_json, nothing="Nothing is left of it.")


@errors_shown
def bring_back(
    side_version: Annotated[
        str, typer.Argument(help="Its id, from the commit's answer or the log.", show_default=False)
    ],
    message: Message = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Put what was set aside where it was meant to be, in the place of what is there now."""
    try:
        identity = UUID(side_version)
    except ValueError:
        raise InvalidInput(f"{side_version[:80]!r} is not the id of a side version.") from None
    with connect(data) as client:
        found = client.history.bring_back(named(project), identity, message=message)
    _report(found, dry_run=False, as_json=as_json, nothing="It is so already.")


@errors_shown
def purge(
    path: Annotated[str | None, typer.Argument(help="All that ever stood there.", show_default=False)] = None,
    content: Annotated[
        str | None, typer.Option("--hash", help="One content, by its sha256.", show_default=False)
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Remove contents from all history, for good: a leaked secret. Rows and the audit trail stay."""
    name = named(project)
    with connect(data) as client:
        found = client.history.purge(name, path=path, content_hash=content, dry_run=True)
        if not dry_run:
            if not yes and not as_json:
                _show_purge(found)
                typer.confirm("This cannot be undone. Purge?", abort=True)
            elif not yes:
                raise InvalidInput("A purge cannot be undone: say --yes.")
            found = client.history.purge(name, path=path, content_hash=content, confirm=name)
    if as_json:
        print_json(found)
    elif dry_run:
        _show_purge(found)
    else:
        print_line(f"Purged {len(found.hashes)} contents; {len(found.deleted)} files were deleted.")


def _seqs(texts: list[str]) -> list[int]:
    seqs: list[int] = []
    for text in texts:
        match = re.fullmatch(r"([0-9]{1,15})(?:\.\.([0-9]{1,15}))?", text)
        if match is None:
            raise InvalidInput(f"{text[:80]!r} is no commit: write its seq, or FIRST..LAST.")
        start = int(match[1])
        end = int(match[2] or start)
        if not start <= end <= start + 10_000:
            raise InvalidInput(f"{text[:80]!r} is not a range of at most 10,000 commits.")
        seqs += range(start, end + 1)
    return seqs


def _report(found: GoingBackView, *, dry_run: bool, as_json: bool, nothing: str) -> None:
    if as_json:
        print_json(found)
    elif dry_run:
        _show_preview(found, nothing)
    else:
        for change in found.changes:
            note = f": {change.reason}" if change.status == "refused" else ""
            print_line(f"{change.status.replace('_', ' ')}  {change.result_path or change.path}{note}")
        if found.seqs:
            print_line(f"Commit {', '.join(map(str, found.seqs))}.")
        elif not found.changes:
            print_line(nothing)
    if any(change.status == "refused" for change in found.changes):
        raise typer.Exit(1)


def _show_preview(found: GoingBackView, nothing: str) -> None:
    print_long(
        Text(visible(line), style=_COLOURS.get(line[:1], ""))
        for file in found.preview
        for line in file.patch.splitlines()
    )
    for path in found.contested:
        print_line(f"in review  {path}: others built upon it")
    if not found.preview and not found.contested:
        print_line(nothing)


def _show_purge(found: PurgeView) -> None:
    print_line(f"{len(found.hashes)} contents, in the history of {len(found.projects)} projects.")
    for file in found.deleted:
        print_line(f"deletes  {file.path}")
