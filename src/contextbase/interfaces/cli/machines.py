"""`contextbase machines …`"""

from typing import Annotated

import typer

from contextbase.interfaces.cli.command import CommandResult, TableRows, command
from contextbase.interfaces.cli.phrases import local_time
from contextbase.sdk import Client

__all__ = ["commands"]

commands = typer.Typer(help="List, drain and remove the machines that hold workspaces.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(help="The machine's name, from `machines list`.", show_default=False)]


@commands.command("list")
@command
def list_(client: Client) -> CommandResult:
    """List the machines that hold workspaces and sandboxes, also those that do not run."""
    machines = client.machines.list().machines
    rows = TableRows(
        columns=("NAME", "STATE", "WORKSPACES", "FOLDERS", "SANDBOXES", "SEEN", "ADDRESS"),
        rows=(
            (
                each.name,
                each.state,
                each.workspaces,
                each.workspace_backend or "-",
                each.sandbox_driver or "-",
                local_time(each.seen_at),
                each.address or "-",
            )
            for each in machines
        ),
        empty="There are no machines. Start one with `contextbase machine`, or with `contextbase up`.",
        whole=("NAME",),
    )
    return CommandResult(machines, rows)


@commands.command("drain")
@command
def drain(client: Client, name: Name) -> CommandResult:
    """Make no new workspaces on a machine. Those that are there go on."""
    machine = client.machines.drain(name)
    return CommandResult(machine, f"{machine.name} takes no new workspaces; {machine.workspaces} are open there.")


@commands.command("resume")
@command
def resume(client: Client, name: Name) -> CommandResult:
    """Make new workspaces on a drained machine again."""
    machine = client.machines.resume(name)
    return CommandResult(machine, f"{machine.name} takes new workspaces.")


@commands.command("forget")
@command
def forget(client: Client, name: Name) -> CommandResult:
    """Remove a machine that will not come back, and give up the workspaces that were open there."""
    forgotten = client.machines.forget(name)
    return CommandResult(
        forgotten, f"Removed {forgotten.name}; {forgotten.workspaces_given_up} open workspaces are given up."
    )
