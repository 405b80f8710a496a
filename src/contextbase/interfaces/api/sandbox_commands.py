"""What a caller asks a sandbox to run."""

from pathlib import PurePosixPath

from contextbase.commands.shell import continued
from contextbase.sandbox.model import WORKSPACE, Command, SandboxId
from contextbase.wire.sandbox import CommandBody

__all__ = ["sandbox_command"]


def sandbox_command(body: CommandBody, sandbox_id: SandboxId, *, has_input: bool) -> Command:
    command = body.argv if body.command is None else body.command
    return Command(
        argv=continued(command or "", sandbox_id, is_placed=body.cwd is not None),
        environment=body.environment,
        cwd=WORKSPACE / PurePosixPath(body.cwd or "."),
        has_input=has_input,
        timeout=body.timeout,
        asked=command if isinstance(command, str) else tuple(command or ()),
    )
