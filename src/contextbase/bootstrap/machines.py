"""A process among the machines of its database, and what it does as one of them."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

import asyncpg

from contextbase import __version__
from contextbase.bootstrap.foundation import Foundation
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database, DatabaseAddress
from contextbase.errors import ContextbaseError
from contextbase.machines.placement import Placement
from contextbase.machines.presence import Presence
from contextbase.machines.repository import MachineRepository
from contextbase.machines.service import MachineService
from contextbase.machines.signature import CallerSigner, SignatureChecker

__all__ = ["MachineRegistration", "known_machines", "machine_name", "machine_service", "open_registration"]


@dataclass(frozen=True, kw_only=True, slots=True)
class MachineRegistration:
    """`presence` and `checker` are None for a server that is no machine."""

    presence: Presence | None
    placement: Placement
    signer: CallerSigner
    checker: SignatureChecker | None


@asynccontextmanager
async def open_registration(foundation: Foundation, *, is_machine: bool) -> AsyncIterator[MachineRegistration]:
    settings, database, repository = foundation.settings, foundation.database, MachineRepository()
    key = foundation.audit_key.derived("requests that servers send on")
    presence = checker = None
    if is_machine:
        presence = Presence(
            database=database,
            repository=repository,
            name=machine_name(settings, foundation.data),
            version=__version__,
            lease=timedelta(seconds=settings.machine.machine_lost_seconds),
        )
        checker = SignatureChecker(key, machine=presence.name, process=presence.process)
    yield MachineRegistration(
        presence=presence,
        placement=Placement(database=database, repository=repository, presence=presence),
        signer=CallerSigner(key),
        checker=checker,
    )
    if presence is not None:
        await presence.leave()


def machine_service(foundation: Foundation) -> MachineService:
    return MachineService(
        database=foundation.database, repository=MachineRepository(), audit=foundation.audit, clock=foundation.clock
    )


async def known_machines(settings: Settings) -> dict[str, str] | None:
    """The states of all machines by name, of a database that is not ours; none if it does not answer or has no schema
    yet. None for our own, which may not run."""
    if settings.database.url is None:
        return None
    try:
        database = await Database.connect(DatabaseAddress(url=settings.database.url.get_secret_value()))
        try:
            async with database.connection() as connection:
                return {each.name: str(each.state) for each in await MachineRepository().all(connection)}
        finally:
            await database.close()
    except (ContextbaseError, asyncpg.UndefinedTableError):
        return {}


def machine_name(settings: Settings, data: DataFolder) -> str:
    return settings.machine.node_name or data.node_name()
