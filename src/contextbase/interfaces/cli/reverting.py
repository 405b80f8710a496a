"""`contextbase rollback, undo, bring-back, purge`: the way back."""

import re
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Final
from uuid import UUID

import typer
from rich.text import Text

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.files import what_is_left
from contextbase.interfaces.cli.identifiers import find_id
from contextbase.interfaces.cli.options import DryRun, Message, PathFilter, Yes
from contextbase.interfaces.cli.output import print_line, print_long, visible
from contextbase.interfaces.cli.paging import every_page
from contextbase.interfaces.cli.phrases import counted
from contextbase.sdk import Client
from contextbase.wire.reverting import PurgeView, RevertingView

__all__ = ["bring_back", "purge", "rollback", "undo"]

_COLOURS: Final = {"+": "green", "-": "red", "@": "cyan"}
_MATCHES: Final = "Nothing to do: it already matches."


@command
def rollback(
    client: Client,
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
    *,
    project: NamedProject,
) -> CommandResult:
    """Restore a file, a folder or everything to a snapshot, as a new commit. Later commits stay in history."""
    if (to is None) == (number is None):
        raise InvalidInput("Say what to restore: a snapshot (REF), or --version N with --file PATH.")
    if number is not None and (path or file) is None:
        raise InvalidInput("--version needs --file PATH: the file whose version it is.")
    found = client.history.rollback(project, to, path=path or file, number=number, message=message, dry_run=dry_run)
    return _result(found, dry_run=dry_run, nothing=_MATCHES)


@command
def undo(
    client: Client,
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
    *,
    project: NamedProject,
) -> CommandResult:
    """Take back commits, and keep what others did since. Where others built on them, it goes to review."""
    if bool(commits) == bool(by or run):
        raise InvalidInput("Say what to undo: commits (SEQ or FIRST..LAST), or --by PRINCIPAL, --run NAME or both.")
    found = client.history.undo(
        project,
        principal=by,
        run=run,
        seqs=_seqs(commits) if commits else None,
        first=first,
        last=last,
        path=path,
        message=message,
        dry_run=dry_run,
    )
    return _result(found, dry_run=dry_run, nothing="Nothing to do: nothing is left of those changes.")


@command
def bring_back(
    client: Client,
    side_version: Annotated[
        str,
        typer.Argument(help="The id of a side version, or its start or end, as `log` shows it.", show_default=False),
    ],
    message: Message = "",
    *,
    project: NamedProject,
) -> CommandResult:
    """Replace a file by a version that was set aside (superseded, or in review)."""
    listed = _side_versions(client, project)
    identity = find_id(side_version, what="side version", listed=listed, see="contextbase log")
    found = client.history.bring_back(project, identity, message=message)
    return _result(found, dry_run=False, nothing=_MATCHES)


@command
def purge(
    client: Client,
    path: Annotated[
        str | None, typer.Argument(help="Purge everything that ever was at this path.", show_default=False)
    ] = None,
    content: Annotated[
        str | None,
        typer.Option("--hash", metavar="SHA256", help="Purge one content, by its sha256.", show_default=False),
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    *,
    project: NamedProject,
    as_json: bool,
) -> CommandResult:
    """Remove contents from all history for good, such as a leaked secret. Commits and the audit trail stay."""
    found = client.history.purge(project, path=path, content_hash=content, dry_run=True)
    if dry_run:
        return CommandResult(found, partial(_print_purge, found))
    if as_json and not yes:
        raise InvalidInput("A purge cannot be undone. With --json it needs --yes.")
    if not yes:
        _print_purge(found)
        typer.confirm("This cannot be undone. Purge?", abort=True)
    found = client.history.purge(project, path=path, content_hash=content, confirm=project)
    sentence = f"Purged {counted(len(found.hashes), 'content')}, and deleted {counted(len(found.deleted), 'file')}."
    return CommandResult(found, " ".join([sentence, *_lost_by_sessions("Sessions lost", found)]))


def _side_versions(client: Client, project: str) -> Iterator[tuple[UUID, str]]:
    for page in every_page(lambda before: client.log(project, before=before, limit=1000)):
        for commit in page.commits:
            for change in commit.changes:
                if change.side_version_id is not None:
                    yield change.side_version_id, f"{change.path}, commit {commit.seq}"


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


def _result(found: RevertingView, *, dry_run: bool, nothing: str) -> CommandResult:
    shown = _print_preview if dry_run else _print_changes
    is_failure = any(change.status == "refused" for change in found.changes)
    return CommandResult(found, partial(shown, found, nothing), is_failure=is_failure)


def _print_changes(found: RevertingView, nothing: str) -> None:
    for change in found.changes:
        note = f": {change.reason}" if change.status == "refused" else what_is_left(change)
        print_line(f"{change.status.replace('_', ' ')}  {change.result_path or change.path}{note}")
    if found.seqs:
        print_line(f"{'Commit' if len(found.seqs) == 1 else 'Commits'} {', '.join(map(str, found.seqs))}.")
    elif not found.changes:
        print_line(nothing)


def _print_preview(found: RevertingView, nothing: str) -> None:
    print_long(
        Text(visible(line), style=_COLOURS.get(line[:1], ""))
        for file in found.preview
        for line in file.patch.splitlines()
    )
    for path in found.contested:
        print_line(f"in review  {path}: others built on it")
    if not found.preview and not found.contested:
        print_line(nothing)


def _print_purge(found: PurgeView) -> None:
    where = counted(len(found.projects), "project")
    print_line(f"Would purge {counted(len(found.hashes), 'content')} from {where}.")
    for line in _lost_by_sessions("Sessions would lose", found):
        print_line(line)
    for file in found.deleted:
        print_line(f"delete  {file.path}")


def _lost_by_sessions(verb: str, found: PurgeView) -> list[str]:
    counts = ((found.session_files, "stored file"), (found.attachments, "attached file"))
    parts = [counted(number, noun) for number, noun in counts if number]
    return [f"{verb} {' and '.join(parts)}."] if parts else []
