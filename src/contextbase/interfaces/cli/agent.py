"""`contextbase agent`: one task, done by one agent or by several side by side."""

from functools import partial
from pathlib import Path
from typing import Annotated, Final

import typer
from rich.live import Live

from contextbase.agent_vocabulary import ExecutionProfile
from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.agent_text import AgentAtWork, drawn_agents, drawn_ends, is_settled
from contextbase.interfaces.cli.command import CommandResult, command
from contextbase.interfaces.cli.command_input import input_of
from contextbase.interfaces.cli.connection import Project, named
from contextbase.interfaces.cli.options import Folder
from contextbase.interfaces.cli.output import error_console, told_if_interrupted
from contextbase.interfaces.cli.phrases import counted
from contextbase.interfaces.cli.run_printer import RunPrinter
from contextbase.sdk import Client
from contextbase.vocabulary import Land
from contextbase.wire.event import MOST_SCOPES

__all__ = [
    "AppOption",
    "AppProjectOption",
    "LandOption",
    "ModelOption",
    "ProfileOption",
    "ProviderOption",
    "agent",
]

_START: Final = "start"

AppOption = Annotated[
    str | None,
    typer.Option(
        "--app", metavar="NAME", help="A session of this app; see `contextbase app list`.", show_default=False
    ),
]
AppProjectOption = Annotated[
    str | None,
    typer.Option("--app-project", metavar="NAME", help="A project of the app; default: default.", show_default=False),
]
ProviderOption = Annotated[
    str | None,
    typer.Option(
        metavar="NAME",
        help="Which agent program works; see `contextbase agents`. Default: the best installed one.",
        show_default=False,
    ),
]
ModelOption = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Which model it uses. Default: the server's.", show_default=False),
]
LandOption = Annotated[
    Land,
    typer.Option(
        metavar="WHEN",
        help="What becomes of its changes: auto (they go through the gate), after_review (a person lands them), never.",
    ),
]
ProfileOption = Annotated[
    ExecutionProfile,
    typer.Option(
        metavar="NAME",
        help="What it asks you for: default (nothing), ask (each tool that changes something), plan (it only plans).",
    ),
]


@command
def agent(
    client: Client,
    task: Annotated[str, typer.Argument(metavar="TASK", help="What to do, in words; - reads it from standard input.")],
    count: Annotated[
        int,
        typer.Option("--count", "-n", metavar="N", help="Let N agents do it side by side.", min=1, max=MOST_SCOPES),
    ] = 1,
    provider: ProviderOption = None,
    model: ModelOption = None,
    folder: Folder = None,
    land: LandOption = Land.AUTO,
    profile: ProfileOption = ExecutionProfile.DEFAULT,
    app: AppOption = None,
    app_project: AppProjectOption = None,
    attach: Annotated[
        list[Path] | None,
        typer.Option("--attach", metavar="FILE", help="A file for the agent. Repeat it for more.", show_default=False),
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep the session open, to go on with `contextbase chat`.")
    ] = False,
    project: Project = None,
    *,
    as_json: bool,
) -> CommandResult:
    """Let an agent do a task in a folder and a sandbox of its own, and land what it changed.

    The exit code is 0 when the agent succeeded and everything went in, else 1. Ctrl-C cancels the run; what was done
    until then stays in its session."""
    words = input_of("-") if task == "-" else task
    if not words.strip():
        raise InvalidInput('Say what to do: contextbase agent "write a summary of the notes"')
    agents: list[AgentAtWork] = []
    with told_if_interrupted(partial(_canceled, client, agents)):
        for _ in range(count):
            if app is not None:
                overrides = {"provider": provider, "model": model}
                session = client.sessions.create_from_app(app, app_project=app_project, overrides=overrides)
            else:
                session = client.sessions.create(
                    named(project), provider=provider, model=model, folder=folder, land=land, profile=profile
                )
            agents.append(AgentAtWork(session=session))
        for one in agents:
            one.run = client.sessions.send(one.session.id, words, attachments=attach or ())
        if count == 1 and not as_json:
            _streamed(client, agents[0])
        else:
            _side_by_side(client, agents)
    for one in agents:
        one.run = client.sessions.run(one.run_id)
        one.goes_on = keep or not is_settled(one)
        if not one.goes_on:
            client.sessions.close(one.session.id)
    answers = [{"session": one.session, "run": one.run} for one in agents]
    return CommandResult(
        answers[0] if count == 1 else answers,
        partial(error_console.print, *drawn_ends(agents), sep="\n", highlight=False, soft_wrap=True),
        is_failure=not all(one.went_well for one in agents),
    )


def _streamed(client: Client, one: AgentAtWork) -> None:
    printer = RunPrinter()
    one.progress = printer.progress
    try:
        for received in client.sessions.events(one.run_id):
            if received.item.type == "event":
                printer.take(received.item.kind, received.item.payload)
                if received.item.kind == "human_loop.requested":
                    printer.note(f"? {received.item.payload.get('prompt')}", "yellow")
                    printer.note(f"  Answer it: contextbase session answer {one.name}", "dim")
    finally:
        printer.close()


def _side_by_side(client: Client, agents: list[AgentAtWork]) -> None:
    by_scope = {f"session:{one.session.id}": one for one in agents}
    with Live(
        console=error_console,
        get_renderable=lambda: drawn_agents(agents),
        refresh_per_second=8,
        transient=True,
    ):
        for received in client.events.follow(list(by_scope), after=_START):
            item = received.item
            if item.type == "event":
                by_scope[item.scope].progress.take(item.kind, item.payload)
            if all(one.progress.is_ended for one in agents):
                return


def _canceled(client: Client, agents: list[AgentAtWork]) -> str:
    """End what has not ended, and say so."""
    at_work = [one for one in agents if one.run is not None and not one.progress.is_ended]
    for one in at_work:
        client.sessions.cancel(one.run_id)
    if not at_work:
        return ""
    names = " ".join(one.name for one in at_work)
    return (
        f"Canceled {counted(len(at_work), 'run')}. What was done until then stays in the session: "
        f"contextbase session show {names}"
    )
