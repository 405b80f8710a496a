"""Sessions over a real database, and short ways to drive them as people and machines do."""

import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path

from tests.support.feed_world import FeedWorld
from tests.support.gate_world import GateWorld
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.repository import AuditRepository
from contextbase.conversation.log import ConversationLog
from contextbase.db.database import Database
from contextbase.identity.model import Action, Caller, PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.machines.presence import Presence
from contextbase.machines.repository import MachineRepository
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.agent_runs import AgentRuns
from contextbase.sessions.model import AgentRun, AgentSession, ClaimedRun, RunFacts, RunId, SessionRequest
from contextbase.sessions.questions import QuestionService
from contextbase.sessions.queue import QueueLimits, RunQueue
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.run_log import RunLog
from contextbase.sessions.service import SessionService
from contextbase.sessions.states import RunState
from contextbase.sessions.steering import SteeredMessages
from contextbase.sessions.todos import TodoService
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import Position, Scope, StreamEvent
from contextbase.streams.service import StreamService

__all__ = ["MACHINES", "WAY", "ManualClock", "SessionWorld"]

WAY = (
    RunState.CLAIMED,
    RunState.RESTORING,
    RunState.LINKING,
    RunState.PREPARING,
    RunState.RUNNING,
    RunState.SYNCING,
    RunState.EXPORTED,
    RunState.SUCCEEDED,
)
"""The states of a run that nothing happens to."""

MACHINES = ("m0", "m1", "m2", "m3")
"""Those that run."""


@dataclass
class ManualClock:
    """Moves when a test says so."""

    time: datetime = datetime(2026, 1, 1, tzinfo=UTC)

    def now(self) -> datetime:
        return self.time

    def pass_by(self, **time: float) -> None:
        self.time += timedelta(**time)


@dataclass
class SessionWorld:
    gate: GateWorld
    streams: StreamService
    sessions: SessionService
    access: SessionAccess
    runs: AgentRuns
    queue: RunQueue
    log: RunLog
    questions: QuestionService
    todos: TodoService
    repository: SessionRepository
    clock: ManualClock

    @classmethod
    @asynccontextmanager
    async def opened(
        cls, database: Database, folder: Path, limits: QueueLimits | None = None
    ) -> AsyncIterator["SessionWorld"]:
        async with FeedWorld.opened(database, folder) as world:
            repository, clock, audit = SessionRepository(), ManualClock(), AuditRepository(TEST_AUDIT_KEY)
            log = ConversationLog(streams=world.streams)
            runs = AgentRuns(database=database, repository=repository, log=log, clock=clock)
            queue = RunQueue(database=database, repository=repository, runs=runs, limits=limits or QueueLimits())
            access = SessionAccess(database=database, repository=repository, audit=audit, clock=clock)
            sessions = SessionService(
                database=database,
                repository=repository,
                identity=IdentityRepository(),
                access=access,
                runs=runs,
                queue=queue,
                log=log,
                audit=audit,
                clock=clock,
            )
            for name in MACHINES:
                machine = Presence(
                    database=database,
                    repository=MachineRepository(),
                    name=name,
                    version="1",
                    lease=timedelta(hours=1),
                )
                await machine.register(None)
            yield cls(
                gate=world.gate,
                streams=world.streams,
                sessions=sessions,
                access=access,
                runs=runs,
                queue=queue,
                log=RunLog(
                    database=database,
                    repository=repository,
                    log=log,
                    steering=SteeredMessages(database=database, repository=repository, clock=clock),
                    clock=clock,
                ),
                todos=TodoService(database=database, access=access),
                questions=QuestionService(
                    database=database,
                    repository=repository,
                    access=access,
                    runs=runs,
                    queue=queue,
                    service=sessions,
                    answers_itself=_never,
                    audit=audit,
                    clock=clock,
                ),
                repository=repository,
                clock=clock,
            )

    @property
    def database(self) -> Database:
        return self.gate.database

    async def person(self, name: str, *actions: Action) -> Caller:
        """A user without special rights; may read and write, if nothing else is said."""
        async with self.database.transaction() as connection:
            principal = await IdentityRepository().ensure_principal(connection, PrincipalKind.USER, name)
        caller = replace(self.gate.owner, principal=principal)
        allowed = frozenset(actions) or frozenset({Action.READ, Action.WRITE})
        return replace(caller, grant=replace(caller.grant, actions=allowed))

    async def session(self, who: Caller | None = None, **wishes: object) -> AgentSession:
        request = SessionRequest(project_id=self.gate.project.id, **{"provider": "scripted", **wishes})  # type: ignore[arg-type]  # forwarded
        return await self.sessions.create(who or self.gate.owner, request)

    async def send(self, session: AgentSession, prompt: str = "Do it.", who: Caller | None = None) -> AgentRun:
        return await self.sessions.send(who or self.gate.owner, session.id, prompt)

    async def queued(self, who: Caller | None = None) -> AgentRun:
        """A run in a session of its own."""
        return await self.send(await self.session(who), who=who)

    async def claim(self, machine: str = "m1") -> ClaimedRun:
        [claimed] = await self.queue.claim(machine)
        return claimed

    async def walk(self, run: AgentRun, until: RunState, facts: RunFacts | None = None) -> AgentRun:
        """Move a claimed run on, as its machine does when all goes well."""
        states = WAY[WAY.index(run.state) : WAY.index(until) + 1]
        for before, after in itertools.pairwise(states):
            run = await self.runs.move(run.id, run.attempt, before, after, facts or RunFacts())
        return run

    async def reload(self, run_id: RunId) -> AgentRun:
        return await self.runs.get(run_id)

    async def expire_leases(self) -> int:
        """As if nobody had heard of any machine for long."""
        async with self.database.connection() as connection:
            await connection.execute(
                "UPDATE run_queue SET lease_until = clock_timestamp() - interval '1 s' WHERE state = 'claimed'"
            )
        return await self.queue.expire()

    async def events(self, session: AgentSession) -> list[StreamEvent]:
        readable = ReadableScope(scope=Scope.session(session.id))
        head = await self.streams.head(readable)
        page = await self.streams.read(readable, Position(epoch=head.epoch), limit=10_000)
        return list(page.events)


async def _never(_session: AgentSession) -> bool:
    return False
