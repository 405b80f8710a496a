"""Moves runs from state to state. Each move is fenced by the run's attempt, told in the session's stream, and keeps the
queue in step, all in one transaction."""

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime
from itertools import pairwise
from typing import Any, Final

from contextbase.conversation.log import ConversationLog, LoggedEvent
from contextbase.conversation.model import RUN_STATE
from contextbase.conversation.question_repository import QuestionRepository
from contextbase.conversation.questions import RESOLVED
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import LeaseLost
from contextbase.ids import Clock
from contextbase.sessions.model import AgentRun, RunFacts, RunId, SessionId
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.states import ENDED, RunState, check_move

__all__ = ["QUESTION_EXPIRED", "AgentRuns", "RunStep", "state_event"]

QUESTION_EXPIRED: Final = "question_expired"
"""Why a run failed: nobody answered in time."""

_SQL: Final = load_queries("contextbase.sessions")
_NO_FACTS: Final = RunFacts()


@dataclass(kw_only=True, slots=True)
class RunStep:
    """One transaction on a run. Locks are taken in one order: session, queue, run, stream."""

    connection: Connection
    session_id: SessionId
    events: list[LoggedEvent] = field(default_factory=list)  # appended when the block ends


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentRuns:
    database: Database
    repository: SessionRepository
    log: ConversationLog
    clock: Clock
    questions: QuestionRepository = field(default_factory=QuestionRepository)

    async def get(self, run_id: RunId) -> AgentRun:
        """Raises `NotFound`."""
        async with self.database.connection() as connection:
            return await self.repository.run(connection, run_id)

    async def is_canceled(self, run_id: RunId) -> bool:
        """Whether somebody wants the run to end, or it is gone."""
        async with self.database.connection() as connection:
            return await self.repository.is_canceled(connection, run_id)

    async def landed_before(self, run: AgentRun) -> Mapping[str, Any] | None:
        """What became of the changes of the run before this one in its session."""
        async with self.database.connection() as connection:
            landed: str | None = await connection.fetchval(_SQL.landed_before, run.session_id, run.number)
        return None if landed is None else json.loads(landed)

    async def move(
        self,
        run_id: RunId,
        attempt: int,
        before: RunState,
        after: RunState,
        facts: RunFacts = _NO_FACTS,
        *,
        through: Sequence[RunState] = (),
    ) -> AgentRun:
        """For the machine that works on an attempt. Raises `LeaseLost` when the run is in another state or at another
        attempt by now, `Conflict` for a move that no run makes. An end takes it out of the queue, and lets the
        session's next run in. States on the way, for which nothing has to be done, are told as well: `through`."""
        states = (before, *through, after)
        async with self.holding(run_id, attempt) as (step, found):
            for one, following in pairwise(states):
                check_move(one, following)
            if found.state is not before:
                raise LeaseLost(f"The run {run_id} is not '{before}' but '{found.state}'; leave it alone.")
            run = found
            for state in through:
                run = await self.apply(step, run, state)
            return await self.apply(step, run, after, facts)

    async def tell(
        self, session_id: SessionId, run_id: RunId, attempt: int, kind: str, data: Mapping[str, object]
    ) -> None:
        """Put something that the server has seen a run do into the session's stream."""
        event = LoggedEvent(kind=kind, run_id=run_id, attempt=attempt, ts=self.clock.now(), data=data)
        async with self.database.transaction() as connection:
            await self.log.append(connection, session_id, [event])
        self.log.hint(session_id)

    async def learn(self, run_id: RunId, attempt: int, facts: RunFacts) -> None:
        """Write down versions, or what landed, without a move."""
        async with self.database.transaction() as connection:
            await self.repository.put_facts(connection, run_id, attempt, facts)

    @asynccontextmanager
    async def step(self, session_id: SessionId) -> AsyncIterator[RunStep]:
        """A transaction in which nobody else changes what the session has in the queue; its events come last."""
        async with self.database.transaction() as connection:
            await self.repository.find(connection, session_id, lock=True)
            step = RunStep(connection=connection, session_id=session_id)
            yield step
            await self.log.append(connection, session_id, step.events)
        if step.events:
            self.log.hint(session_id)

    @asynccontextmanager
    async def holding(self, run_id: RunId, attempt: int) -> AsyncIterator[tuple[RunStep, AgentRun]]:
        """A step on an attempt that a machine still works on, and the run as it is; else `LeaseLost`."""
        session_id = (await self.get(run_id)).session_id
        async with self.step(session_id) as step:
            if await step.connection.fetchval(_SQL.holds_run, run_id, attempt) is None:
                raise LeaseLost(f"Nobody works on attempt {attempt} of the run {run_id} any more; leave it alone.")
            yield step, await self.repository.run(step.connection, run_id, lock=True)

    async def apply(self, step: RunStep, run: AgentRun, after: RunState, facts: RunFacts = _NO_FACTS) -> AgentRun:
        """As `move`, in a transaction under way. Whoever moves a run back to 'queued' returns it to the queue. An end
        closes the questions that nobody answered."""
        connection = step.connection
        run = await self.repository.move(connection, run, after, facts)
        if after is RunState.RUNNING:
            await connection.execute(_SQL.started, run.id)
        elif after in ENDED:
            outcome = "expired" if facts.reason == QUESTION_EXPIRED else "canceled"
            for question_id in await self.questions.pending(connection, run.id):
                step.events.append(self.resolved_event(run, question_id, outcome))
            await connection.execute(_SQL.leave_queue, run.id)
            await connection.execute(_SQL.promote_next, step.session_id)
        step.events.append(self.state_event(run))
        return run

    def resolved_event(
        self,
        run: AgentRun,
        question_id: str,
        outcome: str,
        *,
        answer: Mapping[str, object] | None = None,
        by: str | None = None,
    ) -> LoggedEvent:
        """Tells how a question of a run came to its end: answered, expired or canceled."""
        data = {"question_id": question_id, "outcome": outcome, "answer": answer, "by": by}
        return LoggedEvent(kind=RESOLVED, run_id=run.id, attempt=run.attempt, ts=self.clock.now(), data=data)

    def state_event(self, run: AgentRun) -> LoggedEvent:
        return state_event(run, self.clock.now())


def state_event(run: AgentRun, at: datetime) -> LoggedEvent:
    """Tells of the state that a run is in."""
    told = {"phases": dict(run.phases), "reason": run.reason, "message": run.message, "machine": run.machine}
    data: dict[str, object] = {"number": run.number, "state": str(run.state), "mode": str(run.mode)}
    data |= {name: one for name, one in told.items() if one}
    return LoggedEvent(kind=RUN_STATE, run_id=run.id, attempt=run.attempt, ts=at, data=data)
