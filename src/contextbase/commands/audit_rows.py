"""What the audit trail says of a command."""

from dataclasses import replace

from contextbase.audit.model import OperatorType
from contextbase.commands.redaction import shown_command
from contextbase.identity.model import Caller, Principal
from contextbase.sandbox.model import Command
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.agents import Agents
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["as_agent", "record_command"]


def as_agent(caller: Caller, agent: Principal, way_in: OperatorType) -> tuple[Caller, OperatorType]:
    """The agent as the one who acts, with the token that was used; and under which operator type that is recorded."""
    if agent.id == caller.principal.id:
        return caller, way_in
    acting = replace(caller, principal=agent)
    return acting, Agents.way_in(acting, caller, way_in)


async def record_command(
    activity: Activity, acting: Caller, workspace: WorkspaceRecord, command: Command, *, operator_type: OperatorType
) -> None:
    """Program and arguments, without secrets. Environment and standard input are not recorded."""
    shown = shown_command(command.argv if command.asked is None else command.asked)
    about = (workspace.project_id, workspace.id)
    told, folder = f"ran a command: {shown}", str(command.cwd)
    await activity.record(acting, about, "command.run", told, operator_type, command=shown, folder=folder)
