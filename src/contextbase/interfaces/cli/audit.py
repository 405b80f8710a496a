"""`contextbase audit`"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TextIO

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.log import By, Limit
from contextbase.interfaces.cli.output import Json, errors_shown, print_json, print_line
from contextbase.sdk import Client
from contextbase.wire.history import AuditQuery, AuditRecordView

__all__ = ["audit"]


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
