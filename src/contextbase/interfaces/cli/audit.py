"""`contextbase audit`"""

import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Annotated, TextIO, cast, get_args
from uuid import UUID

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.connection import Project, named
from contextbase.interfaces.cli.options import By, Limit, PathFilter
from contextbase.interfaces.cli.output import print_line, told_if_interrupted
from contextbase.interfaces.cli.paging import every_page
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.sdk import AuditFilter, Client
from contextbase.wire.history import AuditRecordView, OperatorTypeName

__all__ = ["audit"]


@command
def audit(
    client: Client,
    by: By = None,
    action: Annotated[str | None, typer.Option(help="Only this action, such as commit.", show_default=False)] = None,
    path: PathFilter = None,
    since: Annotated[datetime | None, typer.Option(help="Only from this time on (UTC).", show_default=False)] = None,
    until: Annotated[datetime | None, typer.Option(help="Only before this time (UTC).", show_default=False)] = None,
    node_id: Annotated[
        UUID | None, typer.Option(help="Only the file with this id, whatever it was called.", show_default=False)
    ] = None,
    operator_type: Annotated[
        str | None, typer.Option(help="Only what came this way, such as agent, api or web_ui.", show_default=False)
    ] = None,
    system: Annotated[bool, typer.Option("--system", help="The system's own trail: tokens, groups, restores.")] = False,
    first_seq: Annotated[int | None, typer.Option(help="Only from this commit on.", min=0, show_default=False)] = None,
    last_seq: Annotated[int | None, typer.Option(help="Only up to this commit.", min=0, show_default=False)] = None,
    export: Annotated[
        str | None, typer.Option(metavar="FILE", help="Write all matching rows to FILE as JSON lines; - prints them.")
    ] = None,
    limit: Limit = 50,
    project: Project = None,
) -> CommandResult | None:
    """Show or export the audit trail of a project or of the system. Needs a token that allows 'admin'."""
    chain = None if system else named(project)
    wanted = AuditFilter(
        principal=by,
        action=action,
        path=path,
        node_id=node_id,
        operator_type=_operator_type(operator_type),
        since=_utc(since),
        until=_utc(until),
        first_seq=first_seq,
        last_seq=last_seq,
    )
    if export is None:
        records = _records(client, chain, wanted, limit)
        return CommandResult(records, partial(_print, records) if records else "No rows of the audit trail match.")
    count = _export(client, chain, wanted, export)
    if export == "-":
        return None
    return CommandResult({"exported": count, "file": export}, f"Exported {counted(count, 'row')} to {export}.")


def _print(records: Iterable[AuditRecordView]) -> None:
    for record in records:
        where = f"  {record.path}" if record.path else ""
        when = local_time(record.at, seconds=True)
        who = record.principal + (f" for {record.on_behalf_of}" if record.on_behalf_of else "")
        print_line(f"{record.number}  {when}  {who}  {record.action}{where}  {record.summary}")


def _operator_type(given: str | None) -> OperatorTypeName | None:
    if given is not None and given not in get_args(OperatorTypeName):
        raise InvalidInput(f"'{given}' is not an operator type; use one of {', '.join(get_args(OperatorTypeName))}.")
    return cast("OperatorTypeName | None", given)


def _records(client: Client, project: str | None, wanted: AuditFilter, limit: int) -> list[AuditRecordView]:
    pages = every_page(lambda before: client.audit(project, before=before, limit=min(limit, 1000), **wanted))
    return list(islice((record for page in pages for record in page.records), limit))


def _export(client: Client, project: str | None, wanted: AuditFilter, place: str) -> int:
    count = 0
    with _opened(place) as file, told_if_interrupted(lambda: f"{counted(count, 'row')} written to {place} so far."):
        for record in client.export_audit(project, **wanted):
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
