"""This process among the machines of its database: it says that it is there, and learns who else is."""

from contextlib import suppress
from datetime import timedelta
from uuid import UUID

from contextbase.db.database import Database
from contextbase.errors import Conflict, ContextbaseError
from contextbase.ids import new_uuid
from contextbase.machines.model import Capabilities
from contextbase.machines.repository import MachineRepository

__all__ = ["Presence"]


class Presence:
    """`lease`: how long after its last beat the machine counts as lost."""

    def __init__(
        self,
        *,
        database: Database,
        repository: MachineRepository,
        name: str,
        version: str,
        lease: timedelta,
    ) -> None:
        self._database = database
        self._repository = repository
        self._version = version
        self.name = name
        self.lease = lease
        self.process: UUID = new_uuid()
        self.is_draining = False
        self.has_others = False  # machines that a new workspace could go to as well

    async def register(self, address: str | None) -> None:
        """The machine runs from now on. `address`: where other servers reach it; None: they cannot."""
        async with self._database.connection() as connection:
            await self._repository.register(
                connection, self.name, self.process, address=address, version=self._version, lease=self.lease
            )
        await self.beat(Capabilities())

    async def beat(self, capabilities: Capabilities) -> None:
        """To be called several times in a lease. Raises `Conflict` when another process runs as this machine."""
        async with self._database.connection() as connection:
            answer = await self._repository.beat(
                connection, self.name, self.process, lease=self.lease, capabilities=capabilities
            )
        if answer is None:
            raise Conflict(
                f"Another process runs as the machine {self.name}, or an administrator has removed the machine: "
                "nothing is sent here any more. Restart this one, with a CONTEXTBASE_NODE_NAME of its own if both "
                "shall run."
            )
        self.is_draining, self.has_others = answer.is_draining, answer.others > 0

    async def leave(self) -> None:
        """The machine stops, and says so."""
        with suppress(ContextbaseError):  # the database is away: it will count as lost
            async with self._database.connection() as connection:
                await self._repository.leave(connection, self.name, self.process)
