"""Every project's book of leases, in PostgreSQL.

A change is one transaction that holds the project's lease row, and stores what happened as events of it. Storing
an event needs the project's own row, which a commit holds until it is done: so no lease is given, ended or taken over
between the moment a commit looked at the leases and the moment it is in.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from typing import TypeVar
from weakref import WeakValueDictionary

from contextbase.db.database import Connection, Database
from contextbase.ids import PrincipalId, ProjectId
from contextbase.leases.held_leases import Pause, stale
from contextbase.leases.model import Lease, LeaseEventKind, LeaseHolder
from contextbase.leases.processes import this_process
from contextbase.leases.repository import LeaseRepository, OpenedBook
from contextbase.leases.table import LeaseTable
from contextbase.leases.visibility import deeper_place, place, without_names
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.notifier import Notifier
from contextbase.streams.repository import StreamRepository
from contextbase.threads import ended

__all__ = ["LeaseStore", "process_among_machines"]

Result = TypeVar("Result")


def process_among_machines() -> LeaseHolder:
    """This process, where the book is read from other machines, too: two of them may have one name, but never one
    boot. (After a restart of the machine, what its processes held lasts until it expires.)"""
    process = this_process()
    return replace(process, node=f"{process.node} {process.boot}")


class LeaseStore:
    def __init__(
        self,
        *,
        database: Database,
        repository: LeaseRepository,
        wakes: Notifier,  # of leases alone: who waits for one does not want to hear of every commit
        hint: Callable[[ProjectId], None],  # there may be something new in the feed
        process: LeaseHolder | None = None,
    ) -> None:
        self._database = database
        self._repository = repository
        self._streams = StreamRepository()
        self._wakes = wakes
        self._hint = hint
        self._process = process
        self._lines: dict[tuple[ProjectId, str], list[asyncio.Event]] = {}  # who waits for the same, the first first
        self._turns: WeakValueDictionary[ProjectId, asyncio.Lock] = WeakValueDictionary()

    @property
    def process(self) -> LeaseHolder:
        return self._process or process_among_machines()

    async def read(self, project_id: ProjectId) -> OpenedBook:
        async with self._database.connection() as connection:
            return await self._repository.book(connection, project_id)

    async def change(
        self, project_id: ProjectId, work: Callable[[LeaseTable, datetime], Result], *, by: PrincipalId
    ) -> Result:
        """Let `work` change the book while nobody else does. Cancelled, it is done or not at all: this waits to see."""
        doing = asyncio.ensure_future(self._change(project_id, work, by))
        try:
            return await asyncio.shield(doing)
        except asyncio.CancelledError:
            await ended(doing)
            raise

    async def _change(
        self, project_id: ProjectId, work: Callable[[LeaseTable, datetime], Result], by: PrincipalId
    ) -> Result:
        turn = self._turns.setdefault(project_id, asyncio.Lock())
        async with turn, self.locked(project_id) as (connection, opened):  # one connection waits, not one for each
            before = {lease.token: lease for lease in opened.book.leases}
            done = work(opened.book, opened.now)
            await self._repository.save(connection, project_id, before, opened.book, by=by)
            events = self._events(before, opened, by)
            if events:
                await self._streams.append(connection, Scope.project(project_id), events)
        if events:
            self._hint(project_id)
            self._wakes.hint_project(project_id)
        return done

    @asynccontextmanager
    async def locked(self, project_id: ProjectId) -> AsyncIterator[tuple[Connection, OpenedBook]]:
        """A transaction in which nobody else changes the project's leases."""
        async with self._database.transaction() as connection:
            await self._repository.lock(connection, project_id)
            yield connection, await self._repository.book(connection, project_id)

    async def tell_blocked(
        self, project_id: ProjectId, pattern: str, *, owner: str, by: PrincipalId, in_the_way: Lease
    ) -> None:
        event = _event(LeaseEventKind.BLOCKED, pattern, by, {"owner": owner, "blocked_by": in_the_way.owner})
        event = replace(event, path=deeper_place(pattern, in_the_way.pattern))
        async with self._database.transaction() as connection:
            await self._streams.append(connection, Scope.project(project_id), [event])
        self._hint(project_id)

    @contextmanager
    def pauses(self, project_id: ProjectId, pattern: str) -> Iterator[Pause]:
        """How to wait for a lease, while the block lasts. Of those who wait here for the same, the first is woken: only
        one of them can have it. The others still look now and then, since what blocks one may not block another."""
        heard = asyncio.Event()
        line = self._lines.setdefault((project_id, pattern), [])
        line.append(heard)

        def wake() -> None:
            line[0].set()

        async def pause(seconds: float) -> None:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await heard.wait()
            heard.clear()

        try:
            with self._wakes.subscribed(Scope.project(project_id), wake):
                yield pause
        finally:
            line.remove(heard)
            if line:
                line[0].set()
            else:
                del self._lines[project_id, pattern]

    def _events(self, before: dict[int, Lease], opened: OpenedBook, by: PrincipalId) -> list[NewEvent]:
        after, is_stale = {lease.token: lease for lease in opened.book.leases}, stale(opened.now, self.process)
        gone = [lease for token, lease in before.items() if token not in after]
        kinds = [(LeaseEventKind.CLEANUP if is_stale(lease) else LeaseEventKind.RELEASED, lease) for lease in gone]
        kinds += [(LeaseEventKind.ACQUIRED, lease) for token, lease in after.items() if token not in before]
        return [_event(kind, lease.pattern, by, {"owner": lease.owner, "token": lease.token}) for kind, lease in kinds]


def _event(kind: LeaseEventKind, pattern: str, by: PrincipalId, payload: Mapping[str, object]) -> NewEvent:
    """Who sees the place sees the event; one text is for all of them."""
    payload = {"pattern": without_names(pattern), **payload}
    return NewEvent(kind=f"lease.{kind}", principal_id=by, path=place(pattern), payload=payload)
