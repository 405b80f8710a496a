"""`contextbase review …`: what waits for a person."""

import base64
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Final, Literal, cast, get_args
from uuid import UUID

import typer
from rich.text import Text

from contextbase.errors import InvalidInput, NotFound
from contextbase.interfaces.cli.connection import Data, Project, connect, named
from contextbase.interfaces.cli.editor import edited
from contextbase.interfaces.cli.output import (
    Json,
    errors_shown,
    places,
    print_json,
    print_line,
    print_long,
    print_table,
)
from contextbase.interfaces.cli.review_text import drawn, has_markers, short
from contextbase.sdk import Client
from contextbase.wire.review import PickBody, ReviewDetail, ReviewView, StateName

__all__ = ["commands"]

commands = typer.Typer(help="Decide what waits for a person.", no_args_is_help=True)

_PAGE: Final = 200
_MOST_LOOKED_THROUGH: Final = 2000

ReviewId = Annotated[
    str, typer.Argument(metavar="ID", help="The item's id, or how it ends, as `list` shows it.", show_default=False)
]
At = Annotated[
    int | None,
    typer.Option("--at", help="The head (seq) you were shown; `show` prints it.", min=0, show_default=False),
]


@commands.command("list")
@errors_shown
def list_(
    state: Annotated[str, typer.Option(help="open, resolved, rejected, obsolete or all.")] = "open",
    path: Annotated[str | None, typer.Option(help="At this path, or below it.", show_default=False)] = None,
    by: Annotated[str | None, typer.Option("--by", help="Of this author, such as agent:indexer.")] = None,
    claimed_by: Annotated[str | None, typer.Option(help="That somebody is on, such as user:ann.")] = None,
    limit: Annotated[int, typer.Option("--limit", "-n", help="At most so many.", min=1)] = 50,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """List what waits for a person, newest first."""
    if state not in (*get_args(StateName), "all"):
        raise InvalidInput(f"{state[:40]!r} is not a state: {', '.join(get_args(StateName))} or all.")
    wanted = None if state == "all" else cast("StateName", state)
    items: list[ReviewView] = []
    before = None
    with connect(data) as client:
        while len(items) < limit:
            page = client.reviews.page(
                named(project),
                state=wanted,
                path=path,
                author=by,
                claimed_by=claimed_by,
                before=before,
                limit=min(limit - len(items), _PAGE),
            )
            items += page.reviews
            before = page.next_before
            if before is None:
                break
    if as_json:
        print_json(items)
        return
    print_table(
        ("ID", "AGE", "PATH", "WHY", "AUTHOR", "STATE", "CLAIMED"),
        (_row(item) for item in items),
        empty="Nothing waits for a person." if state == "open" else "There is nothing of the kind.",
    )


@commands.command("show")
@errors_shown
def show(review: ReviewId, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Show an item: the merge as it is now, what is contested in it, and what was said."""
    with connect(data) as client:
        item = client.reviews.show(named(project), _found(client, named(project), review))
    if as_json:
        print_json(item)
    else:
        print_long(drawn(item).split("\n", allow_blank=True))


@commands.command("claim")
@errors_shown
def claim(
    review: ReviewId,
    take_over: Annotated[bool, typer.Option("--take-over", help="Even if somebody else is on it.")] = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Say that you are on it. It keeps nobody else from deciding."""
    with connect(data) as client:
        name = named(project)
        item = client.reviews.claim(name, _found(client, name, review), take_over=take_over)
    _report(item, "It is yours.", as_json=as_json)


@commands.command("release")
@errors_shown
def release(review: ReviewId, project: Project = None, data: Data = None, as_json: Json = False) -> None:
    """Take your claim back."""
    with connect(data) as client:
        name = named(project)
        item = client.reviews.release(name, _found(client, name, review))
    _report(item, "Released.", as_json=as_json)


@commands.command("comment")
@errors_shown
def comment(
    review: ReviewId,
    text: Annotated[str, typer.Argument(help="What to say; the author is told.", show_default=False)],
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Say something about an item."""
    with connect(data) as client:
        name = named(project)
        said = client.reviews.comment(name, _found(client, name, review), text)
    if as_json:
        print_json(said)
    else:
        print_line(f"Comment {said.number}.")


@commands.command("resolve")
@errors_shown
def resolve(
    review: ReviewId,
    ours: Annotated[bool, typer.Option("--ours", help="The head stays as it is.")] = False,
    theirs: Annotated[bool, typer.Option("--theirs", help="The writer's text at what is contested.")] = False,
    suggested: Annotated[bool, typer.Option("--suggested", help="What the resolver suggested.")] = False,
    edit: Annotated[bool, typer.Option("--edit", help="Open $EDITOR on the merge with its markers.")] = False,
    file: Annotated[
        Path | None, typer.Option("--file", help="A file of yours as a whole; needs --at.", show_default=False)
    ] = None,
    pick: Annotated[
        str | None,
        typer.Option("--pick", help="Conflict by conflict: 1=ours,2=theirs; needs --at.", show_default=False),
    ] = None,
    at: At = None,
    message: Annotated[str, typer.Option("--message", "-m", help="Why; it is in the log.")] = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Decide an item. What others changed elsewhere meanwhile stays."""
    ways = {"ours": ours, "theirs": theirs, "suggested": suggested, "edit": edit, "file": file, "pick": pick}
    chosen = [way for way, given in ways.items() if given]
    if len(chosen) != 1:
        raise InvalidInput("Choose one of --ours, --theirs, --suggested, --edit, --file and --pick.")
    name = named(project)
    with connect(data) as client:
        review_id = _found(client, name, review)
        if edit:
            shown = client.reviews.show(name, review_id)
            text = _edited(shown)
            item = client.reviews.resolve(
                name, review_id, "edited", text=text, epoch=shown.epoch, ours_seq=shown.ours_seq, message=message
            )
        elif file is not None:
            content = base64.b64encode(_read(file)).decode()
            item = client.reviews.resolve(
                name, review_id, "edited", base64=content, ours_seq=_needed(at), message=message
            )
        elif pick is not None:
            picks = [_pick(part) for part in pick.split(",")]
            item = client.reviews.resolve(name, review_id, "picked", picks=picks, ours_seq=_needed(at), message=message)
        else:
            choice = cast("Literal['ours', 'theirs', 'suggested']", chosen[0])
            item = client.reviews.resolve(name, review_id, choice, ours_seq=at, message=message)
    seq = None if item.closed is None else item.closed.seq
    _report(item, "Resolved; nothing had to change." if seq is None else f"Resolved in commit {seq}.", as_json=as_json)


@commands.command("reject")
@errors_shown
def reject(
    review: ReviewId,
    reason: Annotated[str, typer.Option("--reason", "-m", help="Why; it is added to the discussion.")] = "",
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Close an item without taking any of it in. What was set aside stays in the history."""
    with connect(data) as client:
        name = named(project)
        item = client.reviews.reject(name, _found(client, name, review), reason=reason)
    _report(item, "Rejected.", as_json=as_json)


def _found(client: Client, project: str, text: str) -> UUID:
    """The item a person means: by its id, or by how that ends, which is enough for who just saw it in a list."""
    try:
        return UUID(text)
    except ValueError:
        wanted = text.lower()
    found: list[UUID] = []
    before, looked = None, 0
    while looked < _MOST_LOOKED_THROUGH:
        page = client.reviews.page(project, state=None, before=before, limit=_PAGE)
        found += [item.id for item in page.reviews if str(item.id).endswith(wanted)]
        before, looked = page.next_before, looked + _PAGE
        if before is None:
            break
    if not found:
        raise NotFound(f"There is no review item whose id ends with {text[:40]!r}; `contextbase review list`.")
    if len(found) > 1:
        raise InvalidInput(f"{len(found)} items end with {text[:40]!r}; give more of the id.")
    return found[0]


def _edited(shown: ReviewDetail) -> str:
    sides = (shown.draft, shown.theirs, shown.ours)
    text = next((side.text for side in sides if side is not None and side.text is not None), None)
    if text is None:
        raise InvalidInput(f"{shown.path} is not text: take --ours or --theirs, or give a --file.")
    made, kept = edited(text, name=Path(shown.path).name)
    if has_markers(made):
        raise InvalidInput(f"There are conflict markers left; nothing was sent. Your text is in {kept}.")
    kept.unlink()
    return made


def _read(file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidInput(f"{file} cannot be read: {error.strerror}.") from None


def _needed(at: int | None) -> int:
    if at is None:
        raise InvalidInput("Say which head you saw: --at SEQ, as `contextbase review show` prints it.")
    return at


def _pick(text: str) -> PickBody:
    number, _, side = text.strip().partition("=")
    if not number.isdecimal() or side not in ("ours", "theirs"):
        raise InvalidInput(f"{text[:40]!r} is not NUMBER=ours or NUMBER=theirs.")
    return PickBody(conflict=int(number), side=cast("Literal['ours', 'theirs']", side))


def _row(item: ReviewView) -> tuple[object, ...]:
    why = item.reason if not item.places else f"{item.reason}: {places(len(item.places))}"
    claimed = "" if item.claim is None else f"{item.claim.by}, {_age(item.claim.at)}"
    return short(item.id), _age(item.created_at), Text(item.path), why, item.author, item.state, claimed


def _age(moment: datetime) -> str:
    seconds = int((datetime.now(UTC) - moment).total_seconds())
    for size, unit in ((86_400, "d"), (3_600, "h"), (60, "min")):
        if seconds >= size:
            return f"{seconds // size} {unit}"
    return f"{max(seconds, 0)} s"


def _report(item: ReviewView, sentence: str, *, as_json: bool) -> None:
    if as_json:
        print_json(item)
    else:
        print_line(f"{item.path}: {sentence}")
