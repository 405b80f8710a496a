"""`contextbase token …`"""

from collections.abc import Iterator
from functools import partial
from typing import TYPE_CHECKING, Annotated, cast

import typer

from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.completion import complete_path, complete_project
from contextbase.interfaces.cli.identifiers import find_id, short_id
from contextbase.interfaces.cli.output import print_line
from contextbase.interfaces.cli.paging import every_page
from contextbase.interfaces.cli.phrases import local_day
from contextbase.sdk import Client
from contextbase.wire.token import TokenCreated, TokenView

if TYPE_CHECKING:
    from contextbase.sdk.options import KindName
    from contextbase.wire.token import ActionName

__all__ = ["commands"]

commands = typer.Typer(help="Create, list and revoke access tokens.", no_args_is_help=True)


@commands.command("create")
@command
def create(
    client: Client,
    principal: Annotated[
        str, typer.Argument(help="Whom it is for, such as the name of an agent. Created if new.", show_default=False)
    ],
    kind: Annotated[str, typer.Option(help="user, agent or adapter.")] = "agent",
    name: Annotated[str, typer.Option(help="What it is for. Default: the principal's name.")] = "",
    allow: Annotated[
        list[str] | None,
        typer.Option(help="read, write or admin; repeat for several. Default: read and write.", show_default=False),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option(
            help="How many days it is valid, at most as long as your own token. Default: 90, or as long as that.",
            show_default=False,
        ),
    ] = None,
    project: Annotated[
        str | None,
        typer.Option(
            "--project", "-p", help="Only for this project.", show_default=False, autocompletion=complete_project
        ),
    ] = None,
    path: Annotated[
        str | None,
        typer.Option(
            help="Only at or below this path of the project.", show_default=False, autocompletion=complete_path
        ),
    ] = None,
) -> CommandResult:
    """Create a token. It is printed once and cannot be shown again."""
    token = client.tokens.create(
        principal,
        kind=cast("KindName", kind),  # the client checks it, and the actions
        name=name,
        actions=cast("list[ActionName]", allow or ["read", "write"]),
        days=days,
        project=project,
        path=path,
    )
    return CommandResult(token, partial(_print_created, token))


@commands.command("list")
@command
def list_(client: Client) -> CommandResult:
    """List the tokens that you may manage, newest first, without their secrets."""
    tokens = list(_listed(client))
    rows = TableRows(
        columns=("ID", "FOR", "NAME", "ALLOWS", "EXPIRES"),
        rows=(
            (
                short_id(each.id),
                f"{each.kind}:{each.principal}",
                each.name,
                " ".join(each.actions),
                f"revoked {local_day(each.revoked_at)}" if each.revoked_at else local_day(each.expires_at),
            )
            for each in tokens
        ),
        empty="There are no tokens.",
        whole=("ID",),
    )
    return CommandResult(tokens, rows)


@commands.command("revoke")
@command
def revoke(
    client: Client,
    token: Annotated[
        str,
        typer.Argument(
            metavar="ID", help="The token's id, or its start or end, from `token list`.", show_default=False
        ),
    ],
) -> CommandResult:
    """Revoke a token for good."""
    listed = ((each.id, f"{each.kind} {each.principal}  {each.name}") for each in _listed(client))
    revoked = client.tokens.revoke(find_id(token, what="token", listed=listed, see="contextbase token list"))
    sentence = f"Revoked {revoked.id}." if revoked.revoked_now else f"{revoked.id} was already revoked."
    return CommandResult(revoked, sentence)


def _print_created(token: TokenCreated) -> None:
    print_line(
        f"Created token {token.id} for {token.kind} {token.principal}: {', '.join(token.actions)}, "
        f"until {local_day(token.expires_at)}. It is shown only once:"
    )
    typer.echo(token.secret)


def _listed(client: Client) -> Iterator[TokenView]:
    for page in every_page(lambda before: client.tokens.list(before=before, limit=1000)):
        yield from page.tokens
