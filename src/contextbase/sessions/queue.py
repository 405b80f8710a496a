"""The queue of runs: claimed under a lease, in order within a session, by turns between owners.

A claim is fenced by the run's attempt: a machine whose lease was over, and whose run went to another, changes nothing.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.sessions.agent_runs import AgentRuns, RunStep
from contextbase.sessions.model import (
    AgentRun,
    AgentSession,
    ClaimedRun,
    QueuePlace,
    QueueState,
    RunFacts,
    RunId,
    SessionId,
    WorkerState,
)
from contextbase.sessions.repository import SessionRepository, run_of_row
from contextbase.sessions.states import RunState

__all__ = ["QueueLimits", "RunQueue"]

_SQL: Final = load_queries("contextbase.sessions")
_PLACE: Final = RowShape(QueuePlace, state=QueueState)
_BATCH: Final = 100
_LONGEST_DELAY: Final = timedelta(minutes=5)
_NO_DELAY: Final = timedelta()
_ASKS: Final = "waiting_human"
_ASKS_MESSAGE: Final = "It waits for a person's answer."


@dataclass(frozen=True, kw_only=True, slots=True)
class QueueLimits:
    most_running: int = 100  # runs at a time, on each machine
    most_starting: int = 8  # of them before their agent works: starting is what costs
    most_attempts: int = 3
    lease: timedelta = timedelta(seconds=60)  # a machine beats more often than this
    machine_lost: timedelta = timedelta(minutes=2)  # without a beat of the machine; then others get its sessions


@dataclass(frozen=True, kw_only=True, slots=True)
class RunQueue:
    database: Database
    repository: SessionRepository
    runs: AgentRuns
    limits: QueueLimits = field(default_factory=QueueLimits)

    async def add(self, connection: Connection, session: AgentSession, run: AgentRun, *, priority: int = 0) -> None:
        """Behind the other runs of its session, which must be locked."""
        turn = await connection.fetchval(_SQL.take_turn, session.owner.id)
        await connection.execute(_SQL.enqueue_run, run.id, session.id, session.owner.id, run.number, priority, turn)

    async def claim(self, machine: str, *, limit: int = 1) -> list[ClaimedRun]:
        """The next runs for a machine, at most as many as its limits leave room for. Beat them, or lose them. One that
        is drained gets those whose folder it has; one that is not registered gets none. When this fails, some may be
        claimed all the same: `claimed_by` has them."""
        limits = self.limits
        async with self.database.connection() as connection:
            rows = await connection.fetch(
                _SQL.claim_runs,
                machine,
                limit,
                limits.most_running,
                limits.most_starting,
                limits.lease.total_seconds(),
            )
            return await self._claims(connection, rows)

    async def claimed_by(self, machine: str) -> list[ClaimedRun]:
        """What the machine holds: its last process may have ended in the middle of it."""
        async with self.database.connection() as connection:
            return await self._claims(connection, await connection.fetch(_SQL.claimed_runs, machine))

    async def _claims(self, connection: Connection, rows: list[asyncpg.Record]) -> list[ClaimedRun]:
        claims = []
        for row in rows:
            session = await self.repository.find(connection, SessionId(row["session_id"]))
            if session is not None:  # a session that was removed this moment took its run along
                claims.append(ClaimedRun(run=run_of_row(row), session=session, lease_until=row["lease_until"]))
        return claims

    async def beat(self, machine: str, runs: Mapping[RunId, int]) -> dict[RunId, bool]:
        """Renew the leases of these attempts: which are still the machine's, and whether somebody wants them to end.
        A run that is missing belongs to somebody else: stop working on it."""
        async with self.database.transaction() as connection:
            rows = await connection.fetch(
                _SQL.beat, machine, list(runs), list(runs.values()), self.limits.lease.total_seconds()
            )
        return {RunId(row["run_id"]): row["is_canceled"] for row in rows}

    async def steering(self, sessions: Collection[SessionId]) -> dict[SessionId, list[RunId]]:
        """Messages that wait for the working turns of these sessions, the oldest first."""
        async with self.database.connection() as connection:
            rows = await connection.fetch(_SQL.steering_runs, list(sessions))
        found: dict[SessionId, list[RunId]] = {}
        for row in rows:
            found.setdefault(SessionId(row["session_id"]), []).append(RunId(row["run_id"]))
        return found

    async def release(
        self,
        run_id: RunId,
        attempt: int,
        *,
        reason: str,
        message: str,
        delay: timedelta = _NO_DELAY,
        anywhere: bool = False,
        counts: bool = True,
    ) -> AgentRun:
        """Give a run back for its next attempt, after a while; `anywhere`: also on machines that lack its folder. If it
        counts, and it was the last attempt that it had, the run fails. A run that somebody wants to end is canceled,
        and one that waits for a person goes on waiting, without a machine."""
        async with self.runs.holding(run_id, attempt) as (step, run):
            return await self._give_back(
                step,
                run,
                RunFacts(reason=reason, message=message),
                delay=delay,
                anywhere=anywhere,
                counts=counts,
            )

    async def park(self, run_id: RunId, attempt: int, *, reason: str, message: str) -> AgentRun:
        """Put a run aside until `unpark`. One that waits for a person goes on waiting, without a machine."""
        async with self.runs.holding(run_id, attempt) as (step, run):
            return await self._park(step, run, reason=reason, message=message)

    async def _park(self, step: RunStep, run: AgentRun, *, reason: str, message: str) -> AgentRun:
        await step.connection.execute(_SQL.park, run.id, reason)
        if run.state is RunState.WAITING_HUMAN:
            return run
        return await self.runs.apply(step, run, RunState.QUEUED, RunFacts(reason=reason, message=message))

    async def wait_for_answer(self, run_id: RunId, attempt: int) -> AgentRun:
        """Put a run that asked a person aside, without a machine, and let its sandbox stop; what it has is stored. With
        the answer there already, it goes back for its next attempt."""
        async with self.runs.holding(run_id, attempt) as (step, run):
            connection = step.connection
            if not await self.runs.questions.pending(connection, run_id):
                await connection.execute(_SQL.return_to_queue, run_id, 0.0, False, 0, None)
                return await self.runs.apply(step, run, RunState.QUEUED)
            session = await self.repository.find(connection, step.session_id)
            if session is not None and not session.pinned:
                now = self.runs.clock.now()
                await self.repository.want_worker(connection, step.session_id, WorkerState.STOPPED, now)
            is_told = run.state is RunState.WAITING_HUMAN
            waiting = run if is_told else await self.runs.apply(step, run, RunState.WAITING_HUMAN)
            return await self._park(step, waiting, reason=_ASKS, message=_ASKS_MESSAGE)

    async def unpark(self, run_id: RunId) -> bool:
        """Let a parked run back in for its next attempt; False when it is not parked."""
        session_id = (await self.runs.get(run_id)).session_id
        async with self.runs.step(session_id) as step:
            return await self.unpark_in(step, run_id)

    async def unpark_in(self, step: RunStep, run_id: RunId) -> bool:
        """As `unpark`, in a step under way."""
        row = await step.connection.fetchrow(_SQL.lock_queued, run_id)
        if row is None or row["state"] != QueueState.PARKED:
            return False
        run = await self.repository.run(step.connection, run_id, lock=True)
        if run.state is not RunState.QUEUED:
            await self.runs.apply(step, run, RunState.QUEUED)
        await step.connection.execute(_SQL.return_to_queue, run_id, 0.0, False, 0, None)
        return True

    async def fail(self, run_id: RunId, attempt: int, *, reason: str, message: str) -> AgentRun:
        """Whatever it is doing. A run that somebody wants to end is canceled instead."""
        async with self.runs.holding(run_id, attempt) as (step, run):
            return await self._end(step, run, RunFacts(reason=reason, message=message))

    async def place(self, connection: Connection, run_id: RunId) -> QueuePlace | None:
        """None for a run that has ended."""
        row = await connection.fetchrow(_SQL.queue_place, run_id)
        return None if row is None else _PLACE(row)

    async def claimant(self, connection: Connection, run_id: RunId) -> str | None:
        """The machine that works on a run, if any; nobody else claims it until the transaction ends."""
        row = await connection.fetchrow(_SQL.lock_queued, run_id)
        return None if row is None else row["claimed_by"]

    async def counts(self) -> dict[QueueState, int]:
        """How many runs stand where."""
        async with self.database.connection() as connection:
            rows = await connection.fetch(_SQL.queue_counts)
        return dict.fromkeys(QueueState, 0) | {QueueState(row["state"]): row["runs"] for row in rows}

    async def expire(self) -> int:
        """For the leader: give runs whose lease is over to the next attempt, or end them, and let sessions of lost
        machines go to others. Returns how many leases were over."""
        async with self.database.connection() as connection:
            await connection.execute(_SQL.free_lost_machines, self.limits.machine_lost.total_seconds())
            rows = await connection.fetch(_SQL.expired_runs, _BATCH)
        expired = 0
        for row in rows:
            expired += await self._expire(RunId(row["run_id"]), SessionId(row["session_id"]))
        return expired

    async def _expire(self, run_id: RunId, session_id: SessionId) -> bool:
        async with self.runs.step(session_id) as step:
            if await step.connection.fetchval(_SQL.is_expired, run_id) is None:
                return False  # its machine is back, or another server was faster
            run = await self.repository.run(step.connection, run_id, lock=True)
            message = f"The machine {run.machine} did not answer any more while it worked on the run."
            facts = RunFacts(reason="machine_lost", message=message)
            await self._give_back(step, run, facts, delay=_NO_DELAY, anywhere=False, counts=True)
            return True

    async def _give_back(
        self, step: RunStep, run: AgentRun, facts: RunFacts, *, delay: timedelta, anywhere: bool, counts: bool
    ) -> AgentRun:
        attempts = await step.connection.fetchval(_SQL.attempts_of, run.id)
        is_waiting = run.state is RunState.WAITING_HUMAN and not run.is_canceled
        if is_waiting and await self.runs.questions.pending(step.connection, run.id):
            return await self._park(step, run, reason=_ASKS, message=_ASKS_MESSAGE)
        if run.is_canceled or (counts and attempts + 1 >= self.limits.most_attempts):
            return await self._end(step, run, facts)
        run = await self.runs.apply(step, run, RunState.QUEUED, facts)
        seconds = min(delay, _LONGEST_DELAY).total_seconds()
        await step.connection.execute(
            _SQL.return_to_queue, run.id, seconds, anywhere, int(counts), f"{facts.reason}: {facts.message}"
        )
        return run

    async def _end(self, step: RunStep, run: AgentRun, facts: RunFacts) -> AgentRun:
        after = RunState.FAILED
        if run.is_canceled:
            after, facts = RunState.CANCELED, RunFacts(reason="canceled", message=facts.message)
        return await self.runs.apply(step, run, after, facts)
