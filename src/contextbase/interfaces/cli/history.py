"""`contextbase log` and `contextbase audit`."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TextIO

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line
from contextbase.sdk import Client
from contextbase.wire.history import AuditQuery, AuditRecordView, LogEntryView

__all__ = ["audit", "log"]

Limit = Annotated[int, typer.Option("--limit", "-n", help="At most so many.", min=1)]
By = Annotated[str | None, typer.Option("--by", help="Of this principal, such as agent:indexer.", show_default=False)]
_CHANGES_SHOWN = 10


@errors_shown
def log(
    path: Annotated[str | None, typer.Argument(help="Only of the file at this path, across renames.")] = None,
    by: By = None,
    limit: Limit = 20,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show commits, newest first."""
    with connect(data) as client:
        commits = _commits(client, named(project), path, by, limit)
    if as_json:
        print_json(commits)
        return
    if not commits:
        print_line("There are no commits yet that you may see.")
    for commit in commits:
        author = commit.author
        print_line(f"{commit.seq}  {author.at:%Y-%m-%d %H:%M:%S}  {author.principal}  {author.message}")
        for change in commit.changes[:_CHANGES_SHOWN]:
            before = f" (was {change.path_before})" if change.path_before else ""
            print_line(f"    {change.what.replace('_', ' '):10} {change.path}{before}")
        if commit.change_count > _CHANGES_SHOWN:
            print_line(f"    … and {commit.change_count - _CHANGES_SHOWN} more")


def _commits(client: Client, project: str, path: str | None, by: str | None, limit: int) -> list[LogEntryView]:
    commits: list[LogEntryView] = []
    before = None
    while len(commits) < limit:
        page = client.log(project, path=path, principal=by, before=before, limit=min(limit - len(commits), 1000))
        commits += page.commits
        before = page.next_before
        if before is None:
            break
    return commits


@errors_shown
def audit(
    by: By = None,
    action: Annotated[str | None, typer.Option(help="Such as commit.", show_default=False)] = None,
    path: Annotated[str | None, typer.Option(help="A path, and what is below it.", show_default=False)] = None,
    since: Annotated[datetime | None, typer.Option(help="From this time on (UTC).", show_default=False)] = None,
    until: Annotated[datetime | None, typer.Option(help="Before this time (UTC).", show_default=False)] = None,
    first_seq: Annotated[int | None, typer.Option(help="From this commit on.", min=0, show_default=False)] = None,
    last_seq: Annotated[int | None, typer.Option(help="Up to this commit.", min=0, show_default=False)] = None,
    export: Annotated[
        str | None, typer.Option(help="Write all that matches as JSON lines to this file; - prints them.")
    ] = None,
    limit: Limit = 50,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Show or export a project's audit trail. Needs a token that allows 'admin'."""
    wanted = AuditQuery(
        principal=by,
        action=action,
        path=path,
        since=_utc(since),
        until=_utc(until),
        first_seq=first_seq,
        last_seq=last_seq,
    )
    with connect(data) as client:
        if export is not None:
            count = _export(client, named(project), wanted, export)
            if as_json and export != "-":
                print_json({"exported": count, "file": export})
            elif export != "-":
                print_line(f"Exported {count} rows to {export}.")
            return
        records = _records(client, named(project), wanted, limit)
    if as_json:
        print_json(records)
        return
    if not records:
        print_line("Nothing in the audit trail matches.")
    for record in records:
        where = f"  {record.path}" if record.path else ""
        when = f"{record.at:%Y-%m-%d %H:%M:%S}"
        print_line(f"{record.number}  {when}  {record.principal}  {record.action}{where}  {record.summary}")


def _records(client: Client, project: str, wanted: AuditQuery, limit: int) -> list[AuditRecordView]:
    records: list[AuditRecordView] = []
    before = None
    while len(records) < limit:
        page = client.audit(project, wanted, before=before, limit=min(limit - len(records), 1000))
        records += page.records
        before = page.next_before
        if before is None:
            break
    return records


def _export(client: Client, project: str, wanted: AuditQuery, place: str) -> int:
    count = 0
    with _opened(place) as file:
        for record in client.export_audit(project, wanted):
            file.write(record.model_dump_json() + "\n")
            count += 1
    return count


@contextmanager
def _opened(place: str) -> Iterator[TextIO]:
    if place == "-":
        yield sys.stdout
        sys.stdout.flush()
        return
    try:
        file = Path(place).open("w", encoding="utf-8")  # noqa: SIM115 - only the opening may fail with this sentence
    except OSError as error:
        raise InvalidInput(f"{place} cannot be written: {error.strerror}.") from None
    with file:
        yield file


def _utc(moment: datetime | None) -> datetime | None:
    return None if moment is None else moment.replace(tzinfo=UTC)
