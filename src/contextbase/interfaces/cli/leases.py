"""`contextbase lease …`: reserve files, alone or for as long as a command runs."""

import os
import subprocess
from typing import Annotated

import typer

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.completion import complete_path
from contextbase.interfaces.cli.connection import LEASE_VARIABLE, Data, NamedProject, Project, connect, named
from contextbase.interfaces.cli.output import errors_shown
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.sdk import Client
from contextbase.wire.lease import LeaseView

__all__ = ["commands"]

commands = typer.Typer(help="Reserve files while you work on them.", no_args_is_help=True)

Pattern = Annotated[
    str,
    typer.Argument(
        metavar="PATTERN", help="A path, or a pattern such as src/**.", show_default=False, autocompletion=complete_path
    ),
]
Worker = Annotated[
    str | None,
    typer.Option(
        "--as", metavar="WORKER", help="Which of your workers it is for, if there are several.", show_default=False
    ),
]
Wait = Annotated[
    float, typer.Option("--wait", metavar="SECONDS", help="How long to wait if somebody else has it.", min=0)
]


@commands.command()
@command
def acquire(
    client: Client,
    pattern: Pattern,
    worker: Worker = None,
    wait: Wait = 0.0,
    *,
    project: NamedProject,
) -> CommandResult:
    """Reserve files, and print the lease's token. It expires unless it is renewed: see `lease run`."""
    lease = client.leases.acquire(project, pattern, wait=wait, worker=worker)
    return CommandResult(lease, f"{lease.token}")


@commands.command()
@command
def release(
    client: Client,
    token: Annotated[
        int | None, typer.Argument(metavar="TOKEN", help="The lease's token.", show_default=False, min=1)
    ] = None,
    all_: Annotated[bool, typer.Option("--all", help="Release all your leases.")] = False,
    owner: Annotated[
        str | None,
        typer.Option(
            "--owner",
            help="Release all leases of this owner, such as agent:indexer. Needs 'admin'.",
            show_default=False,
        ),
    ] = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Release a lease, so that others can have the files."""
    if (token is not None) + all_ + (owner is not None) != 1:
        raise InvalidInput("Give one of: a lease's token, --all, --owner.")
    if token is not None:
        client.leases.release(project, token)
        return CommandResult({"token": token}, "Released.")
    ended = client.leases.release_all(project, owner=owner)
    return CommandResult(ended, f"Released {counted(ended.released, 'lease')}.")


@commands.command("list")
@command
def list_(
    client: Client,
    path: Annotated[
        str | None,
        typer.Argument(help="Only leases that overlap with it.", show_default=False, autocompletion=complete_path),
    ] = None,
    owner: Annotated[str | None, typer.Option("--owner", help="Only leases of this owner.", show_default=False)] = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """List who has reserved what."""
    found: list[LeaseView] = []
    after: int | None = 0
    while after is not None:
        page = client.leases.list(project, owner=owner, path=path, after=after, limit=1000)
        found += page.leases
        after = page.next_after
    rows = TableRows(
        columns=("TOKEN", "PATTERN", "OWNER", "SINCE", "EXPIRES"),
        rows=(
            (
                lease.token,
                lease.pattern,
                lease.owner,
                local_time(lease.acquired_at, seconds=True),
                local_time(lease.expires_at, seconds=True),
            )
            for lease in found
        ),
        empty="No leases match." if path or owner else "There are no leases.",
        whole=("TOKEN",),
    )
    return CommandResult(found, rows)


@commands.command()
@errors_shown
def run(
    pattern: Pattern,
    command: Annotated[
        list[str], typer.Argument(help="The command, after --.", metavar="-- COMMAND", show_default=False)
    ],
    worker: Worker = None,
    wait: Wait = 300.0,
    project: Project = None,
    data: Data = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print errors as JSON. The output is the command's own.")
    ] = False,
) -> None:
    """Run a command while holding a lease, and exit with its exit code.

    The lease's token is in CONTEXTBASE_LEASE, which `put`, `rm` and `mv` read: they fail if the lease was lost."""
    del as_json  # whoever shows the errors looks at it
    with connect(data) as client, client.lease(named(project), pattern, wait=wait, worker=worker) as lease:
        environment = os.environ | {LEASE_VARIABLE: str(lease.token)}
        try:
            done = subprocess.run(command, env=environment, check=False)
        except OSError as error:
            raise InvalidInput(f"{command[0][:200]} could not be started: {error.strerror}.") from None
        lease.check()
    raise typer.Exit(done.returncode if done.returncode >= 0 else 128 - done.returncode)
