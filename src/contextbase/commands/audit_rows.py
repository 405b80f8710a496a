"""What the audit trail says of a command."""

from contextbase.commands.redaction import shown_command
from contextbase.identity.model import Caller
from contextbase.sandbox.model import Command
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["record_command"]


async def record_command(activity: Activity, caller: Caller, workspace: WorkspaceRecord, command: Command) -> None:
    """Program and arguments, without secrets. Environment and standard input are not recorded."""
    shown = shown_command(command.argv if command.asked is None else command.asked)
    acting, about = caller.working_as(workspace.principal), (workspace.project_id, workspace.id)
    told, folder = f"ran a command: {shown}", str(command.cwd)
    await activity.record(acting, about, "command.run", told, command=shown, folder=folder)
