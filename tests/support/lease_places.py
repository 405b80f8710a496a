"""Places to keep leases in, one per implementation, each with a clock that the test moves."""

from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import cycle
from pathlib import Path
from typing import Protocol

from tests.support.tree_writer import TEST_AUDIT_KEY, owner_of

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.ids import ProjectId, SystemClock
from contextbase.leases import FolderLeases, LeaseEvent, LeaseManager
from contextbase.leases.postgres import PostgresLeases
from contextbase.leases.repository import LeaseRepository, OpenedBook
from contextbase.leases.store import LeaseStore
from contextbase.storage.projects import ProjectService
from contextbase.streams.notifier import Notifier

__all__ = ["MovedClock", "Place", "folder_place", "postgres_place"]


class MovedClock:
    def __init__(self) -> None:
        self._now = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self._now

    def move(self, by: timedelta) -> None:
        self._now += by


class Connect(Protocol):
    def __call__(self, *, on_event: Callable[[LeaseEvent], None] | None = None) -> LeaseManager: ...


@dataclass(frozen=True, kw_only=True)
class Place:
    clock: MovedClock
    connect: Connect


@asynccontextmanager
async def folder_place(folder: Path) -> AsyncIterator[Place]:
    clock = MovedClock()
    async with AsyncExitStack() as stack:

        def connect(*, on_event: Callable[[LeaseEvent], None] | None = None) -> LeaseManager:
            leases = FolderLeases(folder, clock=clock, on_event=on_event)
            stack.push_async_callback(leases.close)
            return leases

        yield Place(clock=clock, connect=connect)


class MovedTime(LeaseRepository):
    """The database's clock, as the test moves it."""

    def __init__(self, clock: MovedClock) -> None:
        self._clock = clock

    async def book(self, connection: Connection, project_id: ProjectId) -> OpenedBook:
        return replace(await super().book(connection, project_id), now=self._clock.now())


@asynccontextmanager
async def postgres_place(database: Database) -> AsyncIterator[Place]:
    """Two servers on one database, connected to in turn."""
    clock = MovedClock()
    owner = await owner_of(database)
    project = await ProjectService(
        database=database, audit=AuditRepository(TEST_AUDIT_KEY), clock=SystemClock()
    ).create(owner, "leases")
    async with AsyncExitStack() as stack:

        def a_server() -> LeaseStore:
            wakes = Notifier(database, channel="contextbase_leases")
            stack.push_async_callback(wakes.close)
            return LeaseStore(database=database, repository=MovedTime(clock), wakes=wakes, hint=lambda _: None)

        servers = cycle((a_server(), a_server()))

        def connect(*, on_event: Callable[[LeaseEvent], None] | None = None) -> LeaseManager:
            leases = PostgresLeases(next(servers), project.id, principal_id=owner.principal.id, on_event=on_event)
            stack.push_async_callback(leases.close)
            return leases

        yield Place(clock=clock, connect=connect)
