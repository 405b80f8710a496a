"""`contextbase agents`"""

from functools import partial

from rich.text import Text

from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.output import console
from contextbase.sdk import Client
from contextbase.wire.agent import AgentList

__all__ = ["agents"]


@command
def agents(client: Client) -> CommandResult:
    """List the agent programs that sessions can use, and how to install those that are missing."""
    found = client.agents.list()
    return CommandResult(found, partial(_print, found))


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
        for option in each.options:
            values = f" ({', '.join(option.choices)})" if option.choices else ""
            text = Text.assemble((f"{each.name} {option.name}", "cyan"), f"{values}: {option.about}")
            console.print(text, soft_wrap=True)
    for each in found.agents:
        if each.how_to_install is not None:
            console.print(Text.assemble((f"{each.name}: ", "bold"), each.how_to_install), soft_wrap=True)
