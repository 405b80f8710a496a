"""`contextbase sandbox …`: sandboxes on agents' workspaces, to run one command after the other in."""

import asyncio
import sys
from collections.abc import Iterator
from functools import partial
from itertools import islice
from typing import Annotated
from uuid import UUID

import typer

from contextbase.errors import InvalidInput, Unavailable
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.command_input import Stdin, input_of
from contextbase.interfaces.cli.connection import Data, NamedProject, Project, address, connect
from contextbase.interfaces.cli.identifiers import find_id
from contextbase.interfaces.cli.options import Limit
from contextbase.interfaces.cli.output import Json, error_console, errors_shown, print_json, print_line
from contextbase.interfaces.cli.paging import every_page
from contextbase.interfaces.cli.phrases import counted, local_time
from contextbase.interfaces.cli.piped_command import piped_command
from contextbase.interfaces.cli.run import (
    Cpu,
    Environment,
    Log,
    Memory,
    Network,
    Processes,
    Timeout,
    network_of,
    variables_of,
    written,
)
from contextbase.interfaces.cli.run_text import exit_code_of, how_it_ended
from contextbase.interfaces.cli.terminal import shown_terminal, terminal_size
from contextbase.interfaces.cli.workspaces import Agent
from contextbase.sdk import AsyncClient, Client, ExecOptions, PipeOptions
from contextbase.sdk.http import error_of
from contextbase.wire.sandbox import EndedItem, FailedItem, LimitsBody, OutputItem, SandboxView

__all__ = ["commands"]

commands = typer.Typer(help="Run commands in sandboxes on agents' workspaces.", no_args_is_help=True)

Id = Annotated[
    str,
    typer.Argument(
        metavar="SANDBOX", help="The sandbox's id, or its start or end, as `sandbox list` shows it.", show_default=False
    ),
]


@commands.command("create")
@command
def create(
    client: Client,
    environment: Environment = None,
    memory: Memory = None,
    cpu: Cpu = None,
    processes: Processes = None,
    network: Network = "none",
    agent: Agent = None,
    *,
    project: NamedProject,
) -> CommandResult:
    """Create a sandbox on an agent's workspace, and print its id. If there is one already, its id is printed."""
    limits = LimitsBody(max_memory=None if memory is None else memory << 20, max_cpu=cpu, max_processes=processes)
    sandbox = client.sandboxes.create(
        project, agent=agent, limits=limits, network=network_of(network), environment=variables_of(environment)
    )
    return CommandResult(sandbox.view, str(sandbox.id))


@commands.command("list")
@command
def list_(client: Client, limit: Limit = 100, project: Project = None) -> CommandResult:
    """List sandboxes, newest first: everybody's with 'admin', else your own."""
    found = list(islice(_listed(client, project), limit))
    rows = TableRows(
        columns=("SANDBOX", "AGENT", "DRIVER", "SEEN"),
        rows=((one.id, one.agent, one.driver, local_time(one.seen_at)) for one in found),
        empty="No sandboxes match." if project else "There are no sandboxes. Create one: contextbase sandbox create",
        whole=("SANDBOX",),
    )
    return CommandResult(found, rows)


@commands.command("status")
@command
def status(client: Client, sandbox: Id) -> CommandResult:
    """Show whether a sandbox is running, and what it uses."""
    view = client.sandboxes.get(_id(client, sandbox)).view
    return CommandResult(view, partial(_print_status, view))


@commands.command("exec")
@errors_shown
def exec_(
    sandbox: Id,
    command_line: Annotated[
        list[str], typer.Argument(help="The program and its arguments, after --.", metavar="-- COMMAND")
    ],
    environment: Environment = None,
    stdin: Stdin = None,
    timeout: Timeout = None,
    log: Log = False,
    interactive: Annotated[
        bool, typer.Option("--interactive", "-i", help="Pass our standard input on to it, as it comes.")
    ] = False,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run a command in a sandbox, and exit with its exit code (124 if a limit stopped it)."""
    if interactive:
        if stdin is not None or log or as_json:
            raise InvalidInput("--interactive does not go with --stdin, --log and --json.")
        piped = PipeOptions(environment=variables_of(environment))
        if timeout is not None:
            piped["timeout"] = timeout
        with connect(data) as client:
            sandbox_id = _id(client, sandbox)
        raise typer.Exit(asyncio.run(piped_command(address(data), sandbox_id, command_line, piped)))
    options = ExecOptions(environment=variables_of(environment), log=log)
    if timeout is not None:
        options["timeout"] = timeout
    if stdin is not None:
        options["stdin"] = input_of(stdin)
    with connect(data) as client:
        opened = client.sandboxes.get(_id(client, sandbox))
        if as_json:
            answer = opened.exec(command_line, **options)
            print_json(answer)
            raise typer.Exit(exit_code_of(answer.outcome))
        for item in opened.stream(command_line, **options):
            match item:
                case OutputItem():
                    written(item)
                case EndedItem():
                    if not item.outcome.succeeded:
                        error_console.print(f"[yellow]{how_it_ended(item.outcome)}[/]", highlight=False)
                    raise typer.Exit(exit_code_of(item.outcome))
                case FailedItem():
                    raise error_of(item.problem)


@commands.command("shell")
@errors_shown
def shell(
    sandbox: Id,
    command: Annotated[
        str | None, typer.Argument(help="A command for the shell. Default: an interactive shell.", show_default=False)
    ] = None,
    data: Data = None,
) -> None:
    """Open a terminal in a sandbox."""
    if not sys.stdin.isatty():
        raise InvalidInput("A shell needs a terminal. Programs use `contextbase sandbox exec`.")
    with connect(data) as client:
        sandbox_id = _id(client, sandbox)
    raise typer.Exit(asyncio.run(_terminal(address(data), sandbox_id, command)))


@commands.command("remove")
@command
def remove(client: Client, sandbox: Id) -> CommandResult:
    """Stop a sandbox and everything that runs in it. The workspace stays, with the work in it."""
    view = client.sandboxes.get(_id(client, sandbox)).delete()
    return CommandResult(view, f"Removed the sandbox. The workspace of {view.agent} is unchanged.")


def _print_status(view: SandboxView) -> None:
    print_line(f"{view.agent}: {view.state} ({view.driver} on {view.machine})")
    if view.memory is not None:
        print_line(
            f"{view.memory / 2**20:.1f} MB of memory, {counted(view.processes or 0, 'process', 'processes')}, "
            f"{view.cpu_seconds:.1f} s of processor time"
        )


async def _terminal(server: tuple[str, str], sandbox_id: UUID, command: str | None) -> int:
    size = terminal_size()
    async with AsyncClient(*server) as client:
        sandbox = await client.sandboxes.get(sandbox_id)
        async with sandbox.terminal(command, rows=size.lines, columns=size.columns) as terminal:
            await shown_terminal(terminal)
    if terminal.refusal is not None:
        raise Unavailable(f"The terminal was closed: {terminal.refusal}")
    return 0 if terminal.outcome is None else exit_code_of(terminal.outcome)


def _id(client: Client, text: str) -> UUID:
    listed = ((one.id, one.agent) for one in _listed(client, None))
    return find_id(text, what="sandbox", listed=listed, see="contextbase sandbox list")


def _listed(client: Client, project: str | None) -> Iterator[SandboxView]:
    for page in every_page(lambda before: client.sandboxes.list(project, before=before, limit=1000)):
        yield from page.sandboxes
