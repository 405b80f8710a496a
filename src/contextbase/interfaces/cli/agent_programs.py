"""`contextbase agents`"""

from functools import partial
from typing import Annotated

import typer
from rich.text import Text

from contextbase.errors import InvalidInput
from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.output import console
from contextbase.sdk import Client
from contextbase.wire.agent import AgentList, AgentView

__all__ = ["agents"]


@command
def agents(
    client: Client,
    name: Annotated[str | None, typer.Argument(metavar="[AGENT]", help="Show what can be set for this one.")] = None,
) -> CommandResult:
    """List the agent programs that sessions can use, and how to install those that are missing."""
    found = client.agents.list()
    if name is None:
        return CommandResult(found, partial(_print, found))
    chosen = next((each for each in found.agents if name in (each.name, *each.also_called)), None)
    if chosen is None:
        known = ", ".join(each.name for each in found.agents)
        raise InvalidInput(f"{name!r} is not an agent of this server; it has {known}.")
    return CommandResult(chosen, partial(_print_options, chosen))


def _print(found: AgentList) -> None:
    TableRows(
        columns=("AGENT", "STATE", "VERSION", "CAN"),
        rows=(
            (
                each.name,
                ("default" if each.name == found.default else "installed") if each.is_installed else "missing",
                each.version or "-",
                ", ".join(each.capabilities),
            )
            for each in found.agents
        ),
        empty="This server knows no agents.",
        whole=("AGENT",),
    ).print()
    for each in found.agents:
        if each.how_to_install is not None:
            console.print(Text.assemble((f"{each.name}: ", "bold"), each.how_to_install), soft_wrap=True)


def _print_options(agent: AgentView) -> None:
    for option in agent.options:
        values = f" ({', '.join(option.choices)})" if option.choices else ""
        console.print(Text.assemble((option.name, "cyan"), f"{values}: {option.about}"), soft_wrap=True)
