"""What the services of people stand on."""

from dataclasses import dataclass

from contextbase.audit.model import SYSTEM_CHAIN
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import NotFound
from contextbase.identity.model import Caller
from contextbase.identity.people.model import Person
from contextbase.identity.people.ports import Narrowing
from contextbase.identity.people.repository import PeopleRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import Clock

__all__ = ["PeopleParts"]


@dataclass(frozen=True, kw_only=True, slots=True)
class PeopleParts:
    database: Database
    repository: PeopleRepository
    principals: IdentityRepository
    identity: IdentityService
    narrowing: Narrowing
    audit: AuditRepository
    clock: Clock

    async def person(self, connection: Connection, slug: str) -> Person:
        """Locked until the transaction ends. Raises `NotFound`."""
        found = await self.repository.find(connection, slug)
        if found is None:
            raise NotFound(f"There is no person {slug[:120]}; `contextbase user list` shows everybody.")
        return found

    async def note(self, connection: Connection, caller: Caller, action: str, summary: str, **details: object) -> None:
        """Into the system's audit trail."""
        now = self.clock.now()
        await self.audit.note(connection, SYSTEM_CHAIN, action, summary, at=now, by=caller.actor, **details)
