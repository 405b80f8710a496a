"""Leases of a project in a real database, as one or several servers hold them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta

from tests.support.gate_world import GateWorld

from contextbase.db.database import Database
from contextbase.identity.model import Caller
from contextbase.leases.model import DEFAULT_TTL
from contextbase.leases.postgres import PostgresLeases
from contextbase.leases.repository import LeaseRepository
from contextbase.leases.store import LeaseStore, process_among_machines
from contextbase.streams.notifier import Notifier

__all__ = ["LeaseWorld", "expire_leases", "lease_world"]


@dataclass(kw_only=True)
class LeaseWorld:
    gate: GateWorld
    stack: AsyncExitStack

    def of(self, who: Caller, *, node: str = "", ttl: timedelta = DEFAULT_TTL) -> PostgresLeases:
        """As a process of a node has them; of this one, if none is named."""
        database = self.gate.database
        process = replace(process_among_machines(), node=node) if node else None
        wakes = Notifier(database, channel="contextbase_leases")
        self.stack.push_async_callback(wakes.close)
        books = LeaseStore(
            database=database, repository=LeaseRepository(), wakes=wakes, hint=lambda _: None, process=process
        )
        leases = PostgresLeases(books, self.gate.project.id, principal_id=who.principal.id, ttl=ttl)
        self.stack.push_async_callback(leases.close)
        return leases

    async def bind(self, *rules: tuple[str, bool]) -> None:
        """All lease rules: pattern, and whether leases bind there."""
        await self.gate.policies.put_lease_rules(self.gate.owner, self.gate.project.id, rules)


@asynccontextmanager
async def lease_world(gate: GateWorld) -> AsyncIterator[LeaseWorld]:
    async with AsyncExitStack() as stack:
        yield LeaseWorld(gate=gate, stack=stack)


async def expire_leases(database: Database) -> None:
    """As if nobody had heard of their holders for long."""
    async with database.connection() as connection:
        await connection.execute("UPDATE leases SET expires_at = clock_timestamp()")
