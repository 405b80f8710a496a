"""Processes that wait for a command to run, in a control group of its own.

To get into a group takes the kernel 10 ms and more when nobody did so lately, longer than all the rest of a command in
a sandbox of its own. So there is always one that did it before it was needed.
"""

import asyncio
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from contextbase.errors import ContextbaseError
from contextbase.sandbox.cgroups import NO_LIMITS, ControlGroup, remove_group
from contextbase.sandbox.native.launcher.client import Conversation, Launcher

__all__ = ["Spare", "Spares"]

_PREFIX: Final = "run-"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spare:
    conversation: Conversation
    group: ControlGroup | None


class Spares:
    def __init__(self, launcher: Launcher, groups: ControlGroup | None) -> None:
        self._launcher = launcher
        self._groups = groups
        self._next: asyncio.Task[Spare] | None = None

    async def take(self) -> Spare:
        spare = await self._waiting() or await self._made()
        if self._next is None:
            self._next = asyncio.create_task(self._made())
        return spare

    async def close(self) -> None:
        spare = await self._waiting()
        if spare is not None:
            spare.conversation.close()
            if spare.group is not None:
                await remove_group(spare.group)

    async def _waiting(self) -> Spare | None:
        """The one that waits, if there is one: whatever failed when it was made may work now."""
        task, self._next = self._next, None
        if task is None:
            return None
        try:
            return await task
        except (ContextbaseError, OSError):
            return None

    async def _made(self) -> Spare:
        group = None if self._groups is None else self._groups.below(f"{_PREFIX}{uuid4().hex}")
        if group is not None:
            group.make(NO_LIMITS)
        try:
            conversation = await self._launcher.open(() if group is None else group.members)
        except BaseException:
            if group is not None:
                await remove_group(group)
            raise
        return Spare(conversation=conversation, group=group)
