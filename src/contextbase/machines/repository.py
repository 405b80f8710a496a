"""Machines in the database."""

from dataclasses import dataclass
from datetime import timedelta
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.ids import ProjectId, new_uuid
from contextbase.machines.model import Capabilities, MachineRecord, MachineState

__all__ = ["BeatAnswer", "MachineRepository"]

_SQL: Final = load_queries("contextbase.machines")
_MACHINE: Final = RowShape(MachineRecord)


@dataclass(frozen=True, kw_only=True, slots=True)
class BeatAnswer:
    is_draining: bool
    others: int  # machines that can be reached, too


class MachineRepository:
    """Every method works in the caller's transaction."""

    async def register(
        self, connection: Connection, name: str, process: UUID, *, address: str | None, version: str, lease: timedelta
    ) -> None:
        await connection.execute(_SQL.register, new_uuid(), name, process, address, version, lease.total_seconds())

    async def beat(
        self, connection: Connection, name: str, process: UUID, *, lease: timedelta, capabilities: Capabilities
    ) -> BeatAnswer | None:
        """None when another process has the name."""
        row = await connection.fetchrow(
            _SQL.beat,
            name,
            process,
            lease.total_seconds(),
            capabilities.workspace_backend,
            capabilities.sandbox_driver,
        )
        return None if row is None else BeatAnswer(is_draining=row["is_draining"], others=row["others"])

    async def leave(self, connection: Connection, name: str, process: UUID) -> None:
        await connection.execute(_SQL.leave, name, process)

    async def get(self, connection: Connection, name: str) -> MachineRecord | None:
        row = await connection.fetchrow(_SQL.machine, name)
        return None if row is None else _record(row)

    async def all(self, connection: Connection) -> list[MachineRecord]:
        """By name."""
        return [_record(row) for row in await connection.fetch(_SQL.machines)]

    async def is_alive(self, connection: Connection, name: str, process: UUID) -> bool:
        return bool(await connection.fetchval(_SQL.is_alive, name, process))

    async def least_loaded(self, connection: Connection, here: str | None) -> str | None:
        """The name of the machine for a new workspace; None when there is none."""
        name: str | None = await connection.fetchval(_SQL.least_loaded, here)
        return name

    async def drain(self, connection: Connection, name: str, *, is_draining: bool) -> bool:
        """False when it was so already."""
        return bool(await connection.fetchval(_SQL.drain, name, is_draining))

    async def forget(self, connection: Connection, name: str) -> bool:
        """False when it runs, or there is none."""
        return bool(await connection.fetchval(_SQL.forget, name))

    async def give_up_workspaces(self, connection: Connection, name: str) -> list[tuple[ProjectId, UUID]]:
        """The open workspaces that were there: they count as lost from now on, and their sandboxes as removed."""
        await connection.execute(_SQL.give_up_sandboxes, name)
        rows = await connection.fetch(_SQL.give_up_workspaces, name)
        return [(ProjectId(row["project_id"]), row["id"]) for row in rows]


def _record(row: asyncpg.Record) -> MachineRecord:
    capabilities = Capabilities(workspace_backend=row["workspace_backend"], sandbox_driver=row["sandbox_driver"])
    return _MACHINE(row, capabilities=capabilities, state=_state(row))


def _state(row: asyncpg.Record) -> MachineState:
    if row["stopped_at"] is not None:
        return MachineState.STOPPED
    if not row["is_seen"]:
        return MachineState.LOST
    return MachineState.DRAINING if row["is_draining"] else MachineState.RUNNING
