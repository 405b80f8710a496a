"""The lead among a database's servers: a lease on one row, renewed while its holder lives."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import suppress
from datetime import timedelta
from time import monotonic
from typing import Final

from contextbase.chores.metrics import ChoreMetrics
from contextbase.chores.repository import ChoreRepository, Term
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, ContextbaseError
from contextbase.ids import new_uuid

__all__ = ["Leadership"]

_log = logging.getLogger(__name__)

_RENEWALS: Final = 3  # tries in the time of one lease


class Leadership:
    """A process that is killed leads until its lease expires; one that stops gives the lead up at once. A leader that
    cannot renew stops its work before others may begin theirs, by a clock of its own that started earlier."""

    def __init__(
        self,
        *,
        database: Database,
        repository: ChoreRepository,
        server: str,
        lease: timedelta,
        metrics: ChoreMetrics,
    ) -> None:
        self.server = server
        self._database = database
        self._repository = repository
        self._lease = lease
        self._metrics = metrics
        self._holder = new_uuid()
        self._term: Term | None = None
        self._between = lease.total_seconds() / _RENEWALS

    async def keep(self, work: Callable[[], Awaitable[None]]) -> None:
        """Do the work whenever this process leads, until cancelled."""
        while True:
            begun = monotonic()
            term = await self._taken()
            if term is not None:
                await self._lead(term, work, until=begun + self._lease.total_seconds())
                await asyncio.sleep(self._between)  # somebody else leads, or the database is in trouble

    async def fence(self, connection: Connection) -> None:
        """For a leader's chore, first of all in a transaction: nobody else takes the lead until it ends. `Conflict` if
        somebody has. Keep it short: a new leader waits for it, for the time of a lease at the most while nothing
        happens in it."""
        if self._term is None or not await self._repository.fence(connection, self._term, longest_pause=self._lease):
            raise Conflict(f"{self.server} is no longer the leader; another server continues this.")

    async def _taken(self) -> Term | None:
        """None after a while, when somebody else leads."""
        try:
            async with asyncio.timeout(self._between), self._database.connection() as connection:
                left = await self._repository.seconds_led(connection)
                if left <= 0:
                    return await self._repository.take(connection, self._holder, self.server, self._lease)
        except (ContextbaseError, TimeoutError) as error:
            _log.warning("who leads cannot be asked; trying again", extra={"error": str(error)})
            left = self._between
        # Not long after a leader that was killed would have had to renew; sooner if it gives up the lead.
        await asyncio.sleep(min(max(left, 0.05), self._between))
        return None

    async def _lead(self, term: Term, work: Callable[[], Awaitable[None]], *, until: float) -> None:
        _log.info("this server leads", extra={"term": term.number})
        self._metrics.leads.set(1)
        self._term = term
        working = asyncio.ensure_future(work())
        try:
            await self._renew(term, working, until=until)
        finally:
            self._metrics.leads.set(0)
            working.cancel()
            [ended] = await asyncio.gather(working, return_exceptions=True)
            if isinstance(ended, Exception):
                _log.error("the leader's work failed", exc_info=ended)
            self._term = None
            with suppress(ContextbaseError, TimeoutError):
                async with asyncio.timeout(self._between), self._database.connection() as connection:
                    await self._repository.release(connection, term)

    async def _renew(self, term: Term, working: "asyncio.Future[None]", *, until: float) -> None:
        """Until another leads, the lease is nearly over, or there is no work left."""
        while not working.done():
            await asyncio.wait({working}, timeout=self._between)
            begun = monotonic()
            try:
                async with asyncio.timeout(self._between), self._database.connection() as connection:
                    if not await self._repository.renew(connection, term, self._lease):
                        _log.warning("another server leads now", extra={"term": term.number})
                        return
                until = begun + self._lease.total_seconds()
            except (ContextbaseError, TimeoutError) as error:
                _log.warning("the lead could not be renewed", extra={"term": term.number, "error": str(error)})
            if monotonic() > until - self._between:
                _log.warning("the lead is given up: the database does not answer", extra={"term": term.number})
                return
