"""Leases of one project in PostgreSQL, for processes on any number of machines."""

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, asynccontextmanager
from datetime import datetime, timedelta
from typing import Final, TypeVar

from contextbase.ids import PrincipalId, ProjectId
from contextbase.leases.held_leases import Pause, TableLeases, ended_lease
from contextbase.leases.model import DEFAULT_TTL, Lease, Listener
from contextbase.leases.store import LeaseStore
from contextbase.leases.table import LeaseTable

__all__ = ["LONGEST_PAUSE", "PostgresLeases"]

LONGEST_PAUSE: Final = 1.0  # seconds; who is waited for tells, but that may be lost

Result = TypeVar("Result")


class PostgresLeases(TableLeases):
    _longest_pause = LONGEST_PAUSE

    def __init__(
        self,
        books: LeaseStore,
        project_id: ProjectId,
        *,
        principal_id: PrincipalId,  # for whom all owners work that acquire through this object
        ttl: timedelta = DEFAULT_TTL,
        on_event: Listener | None = None,
    ) -> None:
        super().__init__(ttl=ttl, process=books.process, on_event=on_event)
        self._books = books
        self._project_id = project_id
        self._principal_id = principal_id

    @asynccontextmanager
    async def fenced(self, lease: Lease) -> AsyncIterator[None]:
        async with self._books.locked(self._project_id) as (_, opened):
            if opened.book.find(lease.token, opened.now) is None:
                raise ended_lease(lease)
            yield

    async def _read(self) -> tuple[LeaseTable, datetime]:
        opened = await self._books.read(self._project_id)
        return opened.book, opened.now

    async def _changed(self, work: Callable[[LeaseTable, datetime], Result]) -> Result:
        return await self._books.change(self._project_id, work, by=self._principal_id)

    def _pauses(self, pattern: str) -> AbstractContextManager[Pause]:
        return self._books.pauses(self._project_id, pattern)

    async def _blocked(self, pattern: str, owner: str, by: Lease) -> None:
        await super()._blocked(pattern, owner, by)
        await self._books.tell_blocked(self._project_id, pattern, owner=owner, by=self._principal_id, in_the_way=by)
