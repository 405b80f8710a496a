"""`contextbase token …`"""

from typing import Annotated
from uuid import UUID

import typer

from contextbase.interfaces.cli.connection import Data, connect
from contextbase.interfaces.cli.output import Json, console, errors_shown, print_json, print_table
from contextbase.wire.token import TokenCreate

__all__ = ["commands"]

commands = typer.Typer(help="Make, list and revoke access tokens.", no_args_is_help=True)


@commands.command("create")
@errors_shown
def create(
    principal: Annotated[str, typer.Argument(help="Whom it is for, such as an agent's name; made if new.")],
    kind: Annotated[str, typer.Option(help="user, agent or adapter.")] = "agent",
    name: Annotated[str, typer.Option(help="What it is for; default: the principal's name.")] = "",
    allow: Annotated[list[str] | None, typer.Option(help="read, write or admin; may be repeated.")] = None,
    days: Annotated[float, typer.Option(help="How long it lives.")] = 90,
    project: Annotated[str | None, typer.Option(help="Only for this project.")] = None,
    path: Annotated[str | None, typer.Option(help="Only below this path of the project.")] = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Make a token. It is printed once and cannot be shown again."""
    fields = {"principal": principal, "kind": kind, "name": name, "days": days, "project": project, "path": path}
    request = TokenCreate.model_validate(fields | ({"actions": allow} if allow else {}))
    with connect(data) as client:
        token = client.create_token(request)
    if as_json:
        print_json(token)
        return
    console.print(
        f"Made token {token.id} for {token.kind} {token.principal}: {', '.join(token.actions)}, "
        f"until {token.expires_at:%Y-%m-%d}. It is shown this once:",
        highlight=False,
    )
    typer.echo(token.secret)


@commands.command("list")
@errors_shown
def list_(data: Data = None, as_json: Json = False) -> None:
    """List all tokens, newest first, without their secrets."""
    tokens, before = [], None
    with connect(data) as client:
        while True:
            page = client.tokens(before=before, limit=1000)
            tokens.extend(page.tokens)
            if page.next_before is None:
                break
            before = page.next_before
    if as_json:
        print_json(tokens)
        return
    print_table(
        ("ID", "FOR", "NAME", "ALLOWS", "EXPIRES", "REVOKED"),
        (
            (t.id, f"{t.kind} {t.principal}", t.name, ",".join(t.actions), f"{t.expires_at:%Y-%m-%d}",
             f"{t.revoked_at:%Y-%m-%d}" if t.revoked_at else "")
            for t in tokens
        ),
        empty="There are no tokens.",
    )  # fmt: skip


@commands.command("revoke")
@errors_shown
def revoke(
    token_id: Annotated[UUID, typer.Argument(help="The token's id, from `token list`.")],
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Revoke a token for good."""
    with connect(data) as client:
        revoked = client.revoke_token(token_id)
    if as_json:
        print_json(revoked)
    else:
        console.print("Revoked." if revoked.revoked_now else "It was revoked before.")
