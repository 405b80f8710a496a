"""The driver that makes sandboxes with bubblewrap."""

import asyncio
from dataclasses import replace
from pathlib import Path

from contextbase.sandbox.bubblewrap.command_line import VisibleMachine, bubblewrap_line
from contextbase.sandbox.bubblewrap.machine import look_at_machine
from contextbase.sandbox.model import Command, SandboxSpec
from contextbase.sandbox.native.driver import NativeDriver
from contextbase.sandbox.native.starter import folder_of
from contextbase.workspaces.model import Owner

__all__ = ["BubblewrapDriver"]


class BubblewrapDriver(NativeDriver):
    """`extra_read_only`: folders of this machine that sandboxes see, too, at the same place."""

    def __init__(self, root: Path, *, owner: Owner, node: str, extra_read_only: tuple[Path, ...] = ()) -> None:
        def look() -> VisibleMachine:
            root.mkdir(mode=0o700, parents=True, exist_ok=True)
            return look_at_machine(root, owner, extra_read_only)

        super().__init__("bubblewrap", root, owner=owner, node=node, prepare=look)
        self._look = look

    async def bare_line(self, spec: SandboxSpec, command: Command) -> list[str]:
        """What runs a command in the same sandbox without any of us: no limits, no filter, no account but the caller's.
        To see what we add to it."""
        machine = replace(await asyncio.to_thread(self._look), has_own_root=False)
        return bubblewrap_line(machine, spec, folder_of(spec), command=command.argv)
