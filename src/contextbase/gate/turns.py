"""Servers that write to one project at the same time take turns.

Else each finds that another has just been there, all the time: its draft, and what it knew of the head, is worth
nothing, and three servers land a third of what one does. Whoever's turn it is goes on as if it were alone.

A turn is a courtesy that nothing depends on. Who does not get one in time goes on without it, so that a server which
stands still in its turn holds nobody up for long.
"""

import logging
import time
from contextlib import AsyncExitStack
from typing import Final

import asyncpg

from contextbase.db.database import Database
from contextbase.errors import DatabaseUnavailable
from contextbase.ids import ProjectId

__all__ = ["Turn", "Turns"]

_log = logging.getLogger(__name__)

_TURN_SECONDS: Final = 0.1
_NOTICED_SECONDS: Final = 1.0  # for so long others are taken to be there
_LIMIT_WAIT: Final = "SET lock_timeout = '2s'"
_GIVE_UP_SECONDS: Final = 60.0  # not to wait again for a server that stands still in its turn, or was cut off


class _NoTurn(Exception):
    """It cannot be had now: go on without."""

    def __init__(self, reason: str, *, ask_again_after: float = 0.0) -> None:
        super().__init__(reason)
        self.ask_again_after = ask_again_after


class Turns:
    """What a server takes at one time: each turn has a connection, and others need some, too."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._left = database.size // 4

    def of(self, project_id: ProjectId) -> "Turn":
        return Turn(self, project_id)

    async def take(self, project_id: ProjectId, stack: AsyncExitStack) -> bool:
        """Hold the project's turn until the stack is closed. True if another server had it, and we waited."""
        if self._left == 0:
            raise _NoTurn("enough turns are taken")
        self._left -= 1
        stack.callback(self._give_back)
        connection = await stack.enter_async_context(self._database.session())
        key = int.from_bytes(project_id.bytes[8:], "big", signed=True)
        if await connection.fetchval("SELECT pg_try_advisory_lock($1)", key):
            return False
        await connection.execute(_LIMIT_WAIT)
        try:
            await connection.execute("SELECT pg_advisory_lock($1)", key)
        except asyncpg.LockNotAvailableError as error:
            raise _NoTurn("another server keeps it", ask_again_after=_GIVE_UP_SECONDS) from error
        return True

    def _give_back(self) -> None:
        self._left += 1


class Turn:
    """One server's part in the writing of one project; without others, all of it."""

    def __init__(self, turns: Turns, project_id: ProjectId) -> None:
        self._turns = turns
        self._project_id = project_id
        self._noticed_until = 0.0
        self._given_up_until = 0.0
        self._ends = 0.0
        self._held: AsyncExitStack | None = None

    def notice(self) -> None:
        """Another server writes to the project, too."""
        if time.monotonic() >= self._given_up_until:
            self._noticed_until = time.monotonic() + _NOTICED_SECONDS

    @property
    def is_over(self) -> bool:
        return self._held is not None and time.monotonic() > self._ends

    @property
    def is_due(self) -> bool:
        """Whether the next is to be waited for before anything else is begun."""
        return self.is_over or (self._held is None and time.monotonic() < self._noticed_until)

    async def next(self) -> None:
        """End this turn, and wait for the next if others are there: they may have written meanwhile."""
        await self.end()
        if time.monotonic() > self._noticed_until:
            return
        try:
            async with AsyncExitStack() as stack:
                had_to_wait = await self._turns.take(self._project_id, stack)
                self._held, self._ends = stack.pop_all(), time.monotonic() + _TURN_SECONDS
        except _NoTurn as none:
            self._go_without(none, none.ask_again_after)
            return
        except DatabaseUnavailable as error:  # whoever writes is told
            self._go_without(error, 0.0)
            return
        if had_to_wait:
            self.notice()

    def _go_without(self, reason: Exception, seconds: float) -> None:
        self._noticed_until, self._given_up_until = 0.0, time.monotonic() + seconds
        _log.info("a project is written to without a turn", extra={"reason": str(reason)})

    async def end(self) -> None:
        held, self._held = self._held, None
        if held is None:
            return
        try:
            await held.aclose()
        except DatabaseUnavailable:
            _log.info("a turn ended with its connection")
