"""Runs every chore that is registered: the only loop there is around them."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping
from datetime import timedelta

from contextbase.chores.leadership import Leadership
from contextbase.chores.metrics import ChoreMetrics
from contextbase.chores.model import Chore, ChoreRun, Where
from contextbase.chores.repository import ChoreRepository
from contextbase.chores.schedule import next_run_in
from contextbase.db.database import Database
from contextbase.errors import ContextbaseError
from contextbase.ids import Clock

__all__ = ["ChoreRunner"]

_log = logging.getLogger(__name__)

_Record = Callable[[ChoreRun, timedelta], Awaitable[None]]


class ChoreRunner:
    """Each chore has a task of its own: one that fails or takes long does not keep the others waiting. Without a
    leadership, the leader's chores are left to other servers."""

    def __init__(
        self,
        chores: Iterable[Chore],
        *,
        database: Database,
        repository: ChoreRepository,
        leadership: Leadership | None,
        server: str,
        metrics: ChoreMetrics,
        clock: Clock,
    ) -> None:
        self._chores = tuple(chores)
        self._database = database
        self._repository = repository
        self._leadership = leadership
        self._server = server
        self._metrics = metrics
        self._clock = clock
        self._of_machine: dict[str, ChoreRun] = {}
        names = [chore.name for chore in self._chores]
        if len(set(names)) != len(names):
            raise ValueError(f"two chores have one name: {sorted(names)}")

    @property
    def machine_runs(self) -> tuple[ChoreRun, ...]:
        """The last runs of this machine's chores."""
        return tuple(self._of_machine.values())

    async def run(self) -> None:
        """Do this machine's chores now and again, and the leader's while this process leads, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._keep_each(Where.MACHINE, {}, self._remember), name="machine-chores")
            if self._leadership is not None:
                tasks.create_task(self._leadership.keep(self._lead), name="leadership")

    async def _lead(self) -> None:
        """The leader's chores, each when it is due by what the leader before wrote down."""
        due = {}
        async with self._database.connection() as connection:
            for one in await self._repository.recorded(connection):
                due[one.run.name] = (one.due_in, one.run.failures)

        async def record(run: ChoreRun, next_in: timedelta) -> None:
            assert self._leadership is not None  # noqa: S101 - or nobody would lead
            async with self._database.transaction() as connection:
                await self._leadership.fence(connection)
                await self._repository.record(connection, run, next_in=next_in)

        await self._keep_each(Where.LEADER, due, record)

    async def _remember(self, run: ChoreRun, _: timedelta) -> None:
        self._of_machine[run.name] = run

    async def _keep_each(self, where: Where, due: Mapping[str, tuple[timedelta, int]], record: _Record) -> None:
        async with asyncio.TaskGroup() as tasks:
            for chore in self._chores:
                if chore.where is where:
                    wait, failures = due.get(chore.name, (timedelta(), 0))
                    tasks.create_task(self._keep(chore, wait, failures, record), name=f"chore-{chore.name}")

    async def _keep(self, chore: Chore, wait: timedelta, failures: int, record: _Record) -> None:
        wait = min(wait, chore.every)  # it may have been every day when the last leader wrote that down
        while True:
            await asyncio.sleep(wait.total_seconds())
            started_at = self._clock.now()
            error = await self._run(chore)
            failures = failures + 1 if error else 0
            wait = next_run_in(chore.every, failures if chore.backs_off else 0)
            ended_at = self._clock.now()
            run = ChoreRun(
                name=chore.name,
                where=chore.where,
                server=self._server,
                every=chore.every,
                started_at=started_at,
                ended_at=ended_at,
                error=error,
                failures=failures,
                next_at=ended_at + wait,
            )
            try:
                await record(run, wait)
            except ContextbaseError as problem:  # if we do not lead any more, this task is about to be cancelled
                _log.warning("a chore's run is not recorded", extra={"chore": chore.name, "error": problem.message})

    async def _run(self, chore: Chore) -> str | None:
        """What went wrong, for people; what nobody foresaw is in the log alone."""
        error = None
        with self._metrics.seconds.labels(chore.name).time():
            try:
                async with asyncio.timeout(chore.at_most.total_seconds()):
                    await chore.run()
            except ContextbaseError as problem:
                error = f"{problem.code}: {problem.message}"
                _log.warning("a chore did not get done", extra={"chore": chore.name, "error": error})
            except TimeoutError:
                error = f"It took longer than {chore.at_most}."
                _log.warning("a chore did not get done", extra={"chore": chore.name, "error": error})
            except Exception as problem:  # noqa: BLE001 - one bad run must not be a chore's last
                error = f"{type(problem).__name__}; the log has more."
                _log.exception("a chore failed", extra={"chore": chore.name})
        self._metrics.runs.labels(chore.name, "failed" if error else "ok").inc()
        if error is None:
            self._metrics.succeeded_at.labels(chore.name).set_to_current_time()
        return error
