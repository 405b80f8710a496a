"""Which machine a new workspace is made on."""

from contextvars import ContextVar
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import NoMachine
from contextbase.machines.presence import Presence
from contextbase.machines.repository import MachineRepository

__all__ = ["Placement", "was_sent_here"]

was_sent_here: Final = ContextVar("was_sent_here", default=False)
"""Another server has chosen this machine for the request at hand."""


class Placement:
    """The machine with the fewest open workspaces. As long as this process is the only one, nothing is asked."""

    def __init__(self, *, database: Database, repository: MachineRepository, presence: Presence | None) -> None:
        """`presence`: of the machine that this process is; None: it is none."""
        self._database = database
        self._repository = repository
        self._presence = presence

    @property
    def is_here(self) -> bool:
        """Whether a new workspace is made here, whoever it is for."""
        if self._presence is None:
            return False
        return was_sent_here.get() or not (self._presence.has_others or self._presence.is_draining)

    async def choose(self) -> str:
        """The name of the machine; raises `NoMachine` when none takes new workspaces."""
        here = None if self._presence is None else self._presence.name
        async with self._database.connection() as connection:
            chosen = await self._repository.least_loaded(connection, here)
        if chosen is None:
            raise NoMachine(
                "No machine takes new workspaces now: none runs, or all are draining. `contextbase machines list` "
                "shows them; `contextbase machine` starts one."
            )
        return chosen
