"""`contextbase review …`: what waits for a person."""

import base64
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import Annotated, Final, Literal, cast, get_args
from uuid import UUID

import typer
from rich.text import Text

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.connection import NamedProject
from contextbase.interfaces.cli.editor import edited
from contextbase.interfaces.cli.identifiers import find_id, short_id
from contextbase.interfaces.cli.options import By, Limit, Message, PathFilter
from contextbase.interfaces.cli.paging import every_page
from contextbase.interfaces.cli.phrases import counted
from contextbase.interfaces.cli.review_text import drawn, has_markers
from contextbase.sdk import Client
from contextbase.wire.review import PickBody, ReviewDetail, ReviewView, StateName

__all__ = ["commands"]

commands = typer.Typer(help="Decide what waits for review.", no_args_is_help=True)

_PAGE: Final = 200

ReviewId = Annotated[
    str,
    typer.Argument(metavar="ID", help="The item's id, or its start or end, as `list` shows it.", show_default=False),
]
At = Annotated[
    int | None,
    typer.Option("--at", metavar="SEQ", help="The head you saw, as `show` prints it.", min=0, show_default=False),
]


@commands.command("list")
@command
def list_(
    client: Client,
    state: Annotated[
        str, typer.Option(help="Only items in this state: open, resolved, rejected, obsolete or all.")
    ] = "open",
    path: PathFilter = None,
    by: By = None,
    claimed_by: Annotated[
        str | None,
        typer.Option(metavar="PRINCIPAL", help="Only items claimed by somebody, such as user:ann.", show_default=False),
    ] = None,
    limit: Limit = 50,
    *,
    project: NamedProject,
) -> CommandResult:
    """List what waits for review, newest first."""
    if state not in (*get_args(StateName), "all"):
        raise InvalidInput(f"{state[:40]!r} is not a state: {', '.join(get_args(StateName))} or all.")
    wanted = None if state == "all" else cast("StateName", state)
    pages = every_page(
        lambda before: client.reviews.list(
            project,
            state=wanted,
            path=path,
            author=by,
            claimed_by=claimed_by,
            before=before,
            limit=min(limit, _PAGE),
        )
    )
    items = list(islice((item for page in pages for item in page.reviews), limit))
    rows = TableRows(
        columns=("ID", "AGE", "PATH", "WHY", "AUTHOR", "STATE", "CLAIMED"),
        rows=map(_row, items),
        empty="No items match." if path or by or claimed_by or state != "open" else "Nothing waits for review.",
        whole=("ID",),
    )
    return CommandResult(items, rows)


@commands.command("show")
@command
def show(client: Client, review: ReviewId, project: NamedProject) -> CommandResult:
    """Show an item: the merge as it is now, its conflicts and the discussion."""
    item = client.reviews.get(project, _found(client, project, review))
    return CommandResult(item, drawn(item).split("\n", allow_blank=True))


@commands.command("claim")
@command
def claim(
    client: Client,
    review: ReviewId,
    take_over: Annotated[bool, typer.Option("--take-over", help="Claim it even if somebody else has.")] = False,
    *,
    project: NamedProject,
) -> CommandResult:
    """Tell others that you are working on an item. They can still decide it."""
    item = client.reviews.claim(project, _found(client, project, review), take_over=take_over)
    return CommandResult(item, f"{item.path}: Claimed.")


@commands.command("release")
@command
def release(client: Client, review: ReviewId, project: NamedProject) -> CommandResult:
    """Take your claim back."""
    item = client.reviews.release(project, _found(client, project, review))
    return CommandResult(item, f"{item.path}: Released.")


@commands.command("comment")
@command
def comment(
    client: Client,
    review: ReviewId,
    text: Annotated[str, typer.Argument(help="The comment; the author is told.", show_default=False)],
    project: NamedProject,
) -> CommandResult:
    """Add a comment to an item."""
    said = client.reviews.comment(project, _found(client, project, review), text)
    return CommandResult(said, f"Added comment {said.number}.")


@commands.command("resolve")
@command
def resolve(
    client: Client,
    review: ReviewId,
    ours: Annotated[bool, typer.Option("--ours", help="Keep the head as it is.")] = False,
    theirs: Annotated[bool, typer.Option("--theirs", help="Take the author's side of every conflict.")] = False,
    suggested: Annotated[bool, typer.Option("--suggested", help="Take what the resolver suggested.")] = False,
    edit: Annotated[
        bool, typer.Option("--edit", help="Edit the merge, with its conflict markers, in $EDITOR.")
    ] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="Take the content of this file; needs --at.", show_default=False)
    ] = None,
    pick: Annotated[
        str | None,
        typer.Option(
            "--pick", metavar="1=ours,2=theirs", help="Decide conflict by conflict; needs --at.", show_default=False
        ),
    ] = None,
    at: At = None,
    message: Message = "",
    *,
    project: NamedProject,
) -> CommandResult:
    """Decide an item. What others changed elsewhere in the file stays."""
    ways = {"ours": ours, "theirs": theirs, "suggested": suggested, "edit": edit, "file": file, "pick": pick}
    chosen = [way for way, given in ways.items() if given]
    if len(chosen) != 1:
        raise InvalidInput("Choose exactly one of --ours, --theirs, --suggested, --edit, --file and --pick.")
    review_id = _found(client, project, review)
    if edit:
        shown = client.reviews.get(project, review_id)
        text = _edited(shown)
        item = client.reviews.resolve(
            project, review_id, "edited", text=text, epoch=shown.epoch, ours_seq=shown.ours_seq, message=message
        )
    elif file is not None:
        content = base64.b64encode(_read(file)).decode()
        item = client.reviews.resolve(
            project, review_id, "edited", base64=content, ours_seq=_needed(at), message=message
        )
    elif pick is not None:
        picks = [_pick(part) for part in pick.split(",")]
        item = client.reviews.resolve(project, review_id, "picked", picks=picks, ours_seq=_needed(at), message=message)
    else:
        choice = cast("Literal['ours', 'theirs', 'suggested']", chosen[0])
        item = client.reviews.resolve(project, review_id, choice, ours_seq=at, message=message)
    seq = None if item.closed is None else item.closed.seq
    sentence = "Resolved; the file did not have to change." if seq is None else f"Resolved in commit {seq}."
    return CommandResult(item, f"{item.path}: {sentence}")


@commands.command("reject")
@command
def reject(
    client: Client,
    review: ReviewId,
    reason: Annotated[str, typer.Option("--reason", "-m", help="The reason, as a comment for the author.")] = "",
    *,
    project: NamedProject,
) -> CommandResult:
    """Close an item without taking any of it. The version that was set aside stays in the history."""
    item = client.reviews.reject(project, _found(client, project, review), reason=reason)
    return CommandResult(item, f"{item.path}: Rejected.")


def _found(client: Client, project: str, text: str) -> UUID:
    return find_id(text, what="review item", listed=_ids(client, project), see="contextbase review list")


def _ids(client: Client, project: str) -> Iterator[tuple[UUID, str]]:
    for page in every_page(lambda before: client.reviews.list(project, state=None, before=before, limit=_PAGE)):
        for item in page.reviews:
            yield item.id, f"{item.path}, {item.state}"


def _edited(shown: ReviewDetail) -> str:
    sides = (shown.draft, shown.theirs, shown.ours)
    text = next((side.text for side in sides if side is not None and side.text is not None), None)
    if text is None:
        raise InvalidInput(f"{shown.path} is not text. Use --ours, --theirs or --file.")
    made, kept = edited(text, name=Path(shown.path).name)
    if has_markers(made):
        raise InvalidInput(f"There are conflict markers left in the text, so nothing was sent. Your text is in {kept}.")
    kept.unlink()
    return made


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None


def _needed(at: int | None) -> int:
    if at is None:
        raise InvalidInput("Add --at SEQ with the head you saw, as `contextbase review show` prints it.")
    return at


def _pick(text: str) -> PickBody:
    number, _, side = text.strip().partition("=")
    if not number.isdecimal() or side not in ("ours", "theirs"):
        raise InvalidInput(f"{text[:40]!r} is not NUMBER=ours or NUMBER=theirs.")
    return PickBody(conflict=int(number), side=cast("Literal['ours', 'theirs']", side))


def _row(item: ReviewView) -> tuple[object, ...]:
    why = item.reason if not item.places else f"{item.reason}, {counted(len(item.places), 'conflict')}"
    claimed = "" if item.claim is None else f"{item.claim.by}, {_age(item.claim.at)}"
    return short_id(item.id), _age(item.created_at), Text(item.path), why, item.author, item.state, claimed


def _age(moment: datetime) -> str:
    seconds = int((datetime.now(UTC) - moment).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{max(seconds, 0)} s"
