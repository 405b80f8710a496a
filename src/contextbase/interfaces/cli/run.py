"""`contextbase run`: commands of agents, each in a workspace and a sandbox of its own."""

import asyncio
import sys
import time
from base64 import b64decode
from collections.abc import Mapping
from contextlib import aclosing
from secrets import token_hex
from typing import Annotated, Any, Final, cast, get_args

import typer
from rich.live import Live

from contextbase.errors import ContextbaseError, InvalidInput, Unavailable
from contextbase.interfaces.cli.command_input import Stdin, input_of
from contextbase.interfaces.cli.connection import Data, Project, address, connect, named
from contextbase.interfaces.cli.options import Folder, Message
from contextbase.interfaces.cli.output import Json, error_console, errors_shown, print_json
from contextbase.interfaces.cli.run_text import (
    AgentProgress,
    common_refusal,
    drawn_progress,
    drawn_summary,
    exit_code_of,
    how_it_ended,
)
from contextbase.interfaces.cli.workspace_text import drawn_completion, went_in
from contextbase.sdk import AsyncClient, Client, CommandOptions
from contextbase.sdk.http import error_of
from contextbase.wire.sandbox import (
    CommitWhenName,
    CompletedItem,
    EndedItem,
    FailedItem,
    KeptItem,
    LimitsBody,
    NetworkName,
    OutcomeView,
    OutputItem,
    StartedItem,
)
from contextbase.wire.workspace import WorkspaceCompleteView, WorkspaceView

__all__ = [
    "Cpu",
    "Environment",
    "Log",
    "Memory",
    "Network",
    "Processes",
    "Timeout",
    "network_of",
    "run",
    "variables_of",
    "written",
]

_MOST_AT_ONCE: Final = 100
_INDEX: Final = "CONTEXTBASE_RUN_INDEX"

Environment = Annotated[
    list[str] | None,
    typer.Option("--env", "-e", metavar="NAME=VALUE", help="Set a variable for the command.", show_default=False),
]
Timeout = Annotated[
    float | None, typer.Option(metavar="SECONDS", help="Stop it after this time.", min=0.001, show_default=False)
]
Memory = Annotated[
    int | None, typer.Option(metavar="MB", help="How much memory it may use.", min=16, show_default=False)
]
Cpu = Annotated[
    float | None,
    typer.Option(metavar="PERCENT", help="How much of one processor it may use.", min=1, show_default=False),
]
Processes = Annotated[
    int | None, typer.Option(metavar="N", help="How many processes it may have at a time.", min=2, show_default=False)
]
Log = Annotated[bool, typer.Option("--log", help="Keep what it prints as .logs/PROGRAM/TIME.log in the workspace.")]
Network = Annotated[str, typer.Option(help="What network it sees: none or loopback.")]


@errors_shown
def run(
    command: Annotated[
        list[str], typer.Argument(help="The program and its arguments, after --.", metavar="-- COMMAND")
    ],
    count: Annotated[
        int, typer.Option("--count", "-n", metavar="N", help="Run it as N agents side by side.", min=1, max=10_000)
    ] = 1,
    agent: Annotated[
        str | None, typer.Option("--agent", "-a", help="Which agent runs it. Default: a new one.", show_default=False)
    ] = None,
    folder: Folder = None,
    message: Message = "",
    commit: Annotated[str, typer.Option(help="When to commit what it changed: success, always or never.")] = "success",
    environment: Environment = None,
    stdin: Stdin = None,
    timeout: Timeout = None,
    memory: Memory = None,
    cpu: Cpu = None,
    processes: Processes = None,
    network: Network = "none",
    log: Log = False,
    project: Project = None,
    data: Data = None,
    as_json: Json = False,
) -> None:
    """Run a command in a workspace and a sandbox, and commit what it changed.

    The exit code is the command's (124 if a limit stopped it), or 1 if not everything went in. With -n,
    $CONTEXTBASE_RUN_INDEX is the number of the agent, from 1."""
    if commit not in get_args(CommitWhenName):
        raise InvalidInput(f"{commit[:40]!r} is not one of {', '.join(get_args(CommitWhenName))}.")
    limits = LimitsBody(max_memory=None if memory is None else memory << 20, max_cpu=cpu, max_processes=processes)
    options = CommandOptions(
        limits=limits,
        network=network_of(network),
        commit=cast("CommitWhenName", commit),
        message=message,
        environment=variables_of(environment),
        log=log,
    )
    if folder is not None:
        options["folder"] = folder
    if timeout is not None:
        options["timeout"] = timeout
    if stdin is not None:
        options["stdin"] = input_of(stdin)
    if count > 1:
        name = (agent or f"run-{token_hex(3)}").removeprefix("agent:")
        agents = [AgentProgress(agent=f"{name}-{number}") for number in range(1, count + 1)]
        work = _side_by_side(address(data), named(project), command, agents, options)
        try:
            asyncio.run(work)
        finally:  # interrupted, too
            refusal = common_refusal(agents)
            if as_json and refusal is None:
                print_json([_told(one) for one in agents])
            elif refusal is None:
                error_console.print(*drawn_summary(agents), sep="\n", highlight=False, soft_wrap=True)
        if refusal is not None:
            raise refusal
        raise typer.Exit(0 if all(one.went_well for one in agents) else 1)
    with connect(data) as client:
        if as_json:
            try:
                answer = client.commands.run(named(project), command, agent=agent, **options)
            except KeyboardInterrupt:
                raise KeyboardInterrupt(
                    "Its changes, if any, are in its workspace: contextbase workspace list"
                ) from None
            print_json(answer)
            _leave(answer.outcome, answer.completed)
        _leave(*_streamed(client, named(project), command, agent, options))


def variables_of(environment: list[str] | None) -> dict[str, str]:
    return dict(_variable(text) for text in environment or ())


def network_of(text: str) -> NetworkName:
    if text not in get_args(NetworkName):
        raise InvalidInput(f"{text[:40]!r} is not a network: {' or '.join(get_args(NetworkName))}.")
    return cast("NetworkName", text)


def written(item: OutputItem) -> None:
    """As the command wrote it."""
    stream = sys.stdout if item.stream == "stdout" else sys.stderr
    stream.buffer.write(_bytes(item))
    stream.buffer.flush()


def _streamed(
    client: Client, project: str, command: list[str], agent: str | None, options: CommandOptions
) -> tuple[OutcomeView, WorkspaceCompleteView | None]:
    place: WorkspaceView | None = None
    try:
        outcome: OutcomeView | None = None
        for item in client.commands.stream(project, command, agent=agent, **options):
            match item:
                case StartedItem():
                    place = item.workspace
                case OutputItem():
                    written(item)
                case EndedItem():
                    outcome = item.outcome
                    if not outcome.succeeded:
                        error_console.print(f"[yellow]{how_it_ended(outcome)}[/]", highlight=False)
                case CompletedItem() if outcome is not None:
                    for line in drawn_completion(item.completed, here=None):
                        error_console.print(line, soft_wrap=True, highlight=False)
                    if not item.completed.removed:
                        _say_where("What is left is", item.completed.workspace)
                    return outcome, item.completed
                case KeptItem() if outcome is not None:
                    _say_where(f"{item.because.capitalize()}, so nothing is committed. Its work is", item.workspace)
                    return outcome, None
                case FailedItem():
                    raise error_of(item.problem)
                case _:
                    continue
        raise Unavailable("The server closed the stream before the command ended.")
    except (KeyboardInterrupt, ContextbaseError) as stopped:
        is_told = isinstance(stopped, ContextbaseError) and "agent" in stopped.details
        if place is not None and not is_told:
            _say_where("The command did not finish. Its changes, if any, are", place)
        raise


def _say_where(what: str, workspace: WorkspaceView) -> None:
    name = workspace.agent.removeprefix("agent:")
    error_console.print(
        f"{what} in the workspace of {name}: contextbase workspace status|complete|abandon --agent {name}",
        soft_wrap=True,
        highlight=False,
    )


def _leave(outcome: OutcomeView, completed: WorkspaceCompleteView | None) -> None:
    if not outcome.succeeded:
        raise typer.Exit(exit_code_of(outcome))
    raise typer.Exit(0 if completed is None or (completed.removed and went_in(completed)) else 1)


async def _side_by_side(
    server: tuple[str, str], project: str, command: list[str], agents: list[AgentProgress], options: CommandOptions
) -> None:
    room = asyncio.Semaphore(_MOST_AT_ONCE)
    async with AsyncClient(*server) as client:

        async def one(number: int, progress: AgentProgress) -> None:
            variables = {**options.get("environment", {}), _INDEX: str(number)}
            async with room:
                await _followed(client, project, command, progress, {**options, "environment": variables})

        with Live(
            console=error_console,
            get_renderable=lambda: drawn_progress(agents),
            refresh_per_second=8,
            transient=not error_console.is_terminal,
        ):
            await asyncio.gather(*(one(number, progress) for number, progress in enumerate(agents, 1)))


async def _followed(
    client: AsyncClient, project: str, command: list[str], progress: AgentProgress, options: Mapping[str, Any]
) -> None:
    try:
        async with aclosing(client.commands.stream(project, command, agent=progress.agent, **options)) as items:
            async for item in items:
                match item:
                    case StartedItem():
                        progress.started = time.monotonic()
                    case OutputItem():
                        progress.take_output(_bytes(item).decode(errors="replace"))
                    case EndedItem():
                        progress.outcome = item.outcome
                    case CompletedItem():
                        progress.take_completed(item.completed)
                    case KeptItem():
                        progress.kept_because = item.because
                    case FailedItem():
                        progress.error = item.problem.detail
    except ContextbaseError as error:
        progress.error = error.message
        progress.refusal = error if progress.started is None else None
    progress.ended = time.monotonic()


def _told(one: AgentProgress) -> dict[str, Any]:
    return {
        "agent": one.agent,
        "went_well": one.went_well,
        "outcome": None if one.outcome is None else one.outcome.model_dump(),
        "changes": dict(one.counts),
        "kept_because": one.kept_because,
        "error": one.error,
    }


def _bytes(item: OutputItem) -> bytes:
    return b64decode(item.base64) if item.base64 is not None else (item.text or "").encode()


def _variable(text: str) -> tuple[str, str]:
    name, sign, value = text.partition("=")
    if not sign or not name:
        raise InvalidInput(f"{text[:40]!r} is not NAME=VALUE.")
    return name, value
