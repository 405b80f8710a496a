"""Machines for administrators, and for servers that send requests there."""

from uuid import UUID

from contextbase.audit.model import SYSTEM_CHAIN, AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.ttl_cache import TtlCache
from contextbase.errors import Conflict, MachineLost, NotFound
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock
from contextbase.machines.model import MachineRecord
from contextbase.machines.repository import MachineRepository

__all__ = ["MachineService", "lost"]


class MachineService:
    def __init__(
        self, *, database: Database, repository: MachineRepository, audit: AuditRepository, clock: Clock
    ) -> None:
        self._database = database
        self._repository = repository
        self._audit = audit
        self._clock = clock
        self._alive: TtlCache[tuple[str, UUID], bool] = TtlCache()

    async def list(self, caller: Caller) -> list[MachineRecord]:
        """By name. Needs 'admin' of all projects, like all that is asked for by a caller here."""
        caller.require(Action.ADMIN)
        async with self._database.connection() as connection:
            return await self._repository.all(connection)

    async def drain(self, caller: Caller, name: str, *, is_draining: bool) -> MachineRecord:
        """Whether new workspaces may be made there. It stays so when the machine is restarted."""
        caller.require(Action.ADMIN)
        async with self._database.transaction() as connection:
            if await self._repository.drain(connection, name, is_draining=is_draining):
                action, told = ("machine.drain", "Drained") if is_draining else ("machine.resume", "Resumed")
                await self._record(connection, caller, action, f"{told} the machine {name}.")
            return await self._found(connection, name)

    async def forget(self, caller: Caller, name: str) -> int:
        """Remove a machine that will not come back; how many open workspaces are given up with it. `Conflict` while it
        runs. Should it come back all the same, what lies in its folders is still there."""
        caller.require(Action.ADMIN)
        async with self._database.transaction() as connection:
            if not await self._repository.forget(connection, name):
                machine = await self._found(connection, name)
                raise Conflict(f"The machine {machine.name} runs; stop it first.")
            lost = await self._repository.give_up_workspaces(connection, name)
            told = f"Removed the machine {name} and gave up {len(lost)} open workspaces that were there."
            await self._record(connection, caller, "machine.forget", told)
        return len(lost)

    async def reachable(self, name: str) -> tuple[MachineRecord, str]:
        """A machine that runs, and its address. Raises `MachineLost`."""
        async with self._database.connection() as connection:
            machine = await self._repository.get(connection, name)
        if machine is None:
            raise MachineLost(
                f"The machine {name} holds this, and nothing is known of it any more. It is there again when that "
                "machine runs on this database.",
                machine=name,
            )
        if not machine.is_alive:
            raise lost(machine)
        if machine.address is None:
            raise MachineLost(
                f"The machine {name} holds this, and other servers cannot reach it: it has no address "
                "(CONTEXTBASE_MACHINE_ADDRESS).",
                machine=name,
                seen_at=machine.seen_at.isoformat(),
            )
        return machine, machine.address

    async def is_alive(self, machine: MachineRecord) -> bool:
        """Whether the same process still runs; asked often."""
        key = (machine.name, machine.process)
        known = self._alive.get(key)
        if known is None:
            async with self._database.connection() as connection:
                known = await self._repository.is_alive(connection, *key)
            self._alive.put(key, known)
        return known

    async def _found(self, connection: Connection, name: str) -> MachineRecord:
        machine = await self._repository.get(connection, name)
        if machine is None:
            raise NotFound(f"There is no machine {name[:100]}; `contextbase machines list` shows those there are.")
        return machine

    async def _record(self, connection: Connection, caller: Caller, action: str, told: str) -> None:
        entry = AuditEntry(action=action, by=caller.actor, at=self._clock.now(), summary=told)
        await self._audit.append(connection, SYSTEM_CHAIN, [entry])


def lost(machine: MachineRecord) -> MachineLost:
    """What to say of a machine that does not answer."""
    seen = f"{machine.seen_at:%Y-%m-%d %H:%M:%S} UTC"
    how = "was stopped" if machine.state == "stopped" else "does not answer"
    return MachineLost(
        f"The machine {machine.name} holds this, and it {how}; it was last seen at {seen}. Nothing is lost: what was "
        "on it is there again when it runs.",
        machine=machine.name,
        seen_at=machine.seen_at.isoformat(),
        state=str(machine.state),
    )
