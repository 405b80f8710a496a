"""Sessions for their owners: made, talked to, stopped, closed, deleted."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from contextbase.agents.model import Capability
from contextbase.agents.registry import adapter_named
from contextbase.audit.repository import AuditRepository
from contextbase.conversation.log import ConversationLog, LoggedEvent
from contextbase.conversation.model import MESSAGE_USER, AgentMessage, ToolExecution
from contextbase.conversation.repository import ConversationRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, Forbidden, NotFound, TooBusy
from contextbase.identity.model import Action, Caller, GrantSource, Principal, PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import Clock, ProjectId, TreePath, new_uuid
from contextbase.models.model import RunUsage
from contextbase.models.repository import ModelRepository
from contextbase.sessions.access import SessionAccess, SessionStanding
from contextbase.sessions.agent_runs import AgentRuns, RunStep
from contextbase.sessions.message_facts import request_hash_of, title_of
from contextbase.sessions.model import (
    AgentRun,
    AgentSession,
    QueuePlace,
    RunFacts,
    RunId,
    RunWishes,
    SessionId,
    SessionRequest,
    SessionState,
    SessionWorker,
    WorkerState,
    check_title,
    checked_prompt,
)
from contextbase.sessions.queue import RunQueue
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.states import ACTIVE, ENDED, RunState
from contextbase.vocabulary import SendMode

__all__ = ["RunDetails", "SessionDetails", "SessionService"]

_ACTIONS: Final = frozenset({Action.READ, Action.WRITE})
_MOST_OPEN_RUNS: Final = 100
_AFTER_ALL: Final = 2**62


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionDetails:
    session: AgentSession
    worker: SessionWorker | None
    open_runs: tuple[AgentRun, ...]  # that have not ended, the oldest first
    standing: SessionStanding  # of whoever asked


@dataclass(frozen=True, kw_only=True, slots=True)
class RunDetails:
    run: AgentRun
    place: QueuePlace | None  # None: it has ended
    usage: RunUsage  # as the gateway counted it


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionService:
    database: Database
    repository: SessionRepository
    identity: IdentityRepository
    access: SessionAccess
    runs: AgentRuns
    queue: RunQueue
    log: ConversationLog
    audit: AuditRepository
    clock: Clock
    conversation: ConversationRepository = field(default_factory=ConversationRepository)
    models: ModelRepository = field(default_factory=ModelRepository)

    async def create(self, caller: Caller, request: SessionRequest, *, chat_id: str | None = None) -> AgentSession:
        """A session of the caller's, in a project or a folder of it. Its agent may do what the grant allows."""
        caller.require(Action.READ, request.project_id)
        if caller.grant.source is GrantSource.RUN:
            raise Forbidden("An agent at work in a session starts no other session.")
        folder = _folder(caller, request.folder)
        request = SessionRequest(
            project_id=request.project_id,
            folder=folder,
            provider=request.provider,
            model=request.model,
            land=request.land,
            profile=request.profile,
            title=request.title,
            options=request.options,
        )
        async with self.database.transaction() as connection:
            if not await self.identity.project_exists(connection, request.project_id):
                raise NotFound(f"There is no project {request.project_id}.")
            return await self.add(connection, caller, request, caller.grant.actions & _ACTIONS, chat_id=chat_id)

    async def add(
        self,
        connection: Connection,
        caller: Caller,
        request: SessionRequest,
        actions: frozenset[Action],
        *,
        session_id: SessionId | None = None,
        forked_from: SessionId | None = None,
        chat_id: str | None = None,
    ) -> AgentSession:
        """A session of the caller's, in a transaction under way, for those who have checked that it may be made."""
        session_id = session_id or SessionId(new_uuid())
        agent = await self._new_agent(connection)
        await self.repository.insert(
            connection,
            session_id,
            owner=caller.principal,
            agent=agent,
            request=request,
            actions=actions,
            chat_id=chat_id,
        )
        await self.audit.note(
            connection,
            request.project_id,
            "session.create",
            "Made a session." if forked_from is None else "Forked a session.",
            at=self.clock.now(),
            by=caller.actor,
            session_id=str(session_id),
            **({} if forked_from is None else {"forked_from": str(forked_from)}),
        )
        return await self.access.owned(connection, caller, session_id)

    async def list(
        self,
        caller: Caller,
        *,
        project_id: ProjectId | None = None,
        before: SessionId | None = None,
        limit: int = 50,
        alerted: bool = False,
    ) -> Sequence[AgentSession]:
        """The caller's own, newest first. `alerted`: only those whose files cannot be stored."""
        project_id = project_id or caller.grant.project_id
        caller.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            return await self.repository.of_owner(
                connection, caller.principal.id, project_id=project_id, before=before, limit=limit, alerted=alerted
            )

    async def get(self, caller: Caller, session_id: SessionId) -> SessionDetails:
        async with self.database.transaction() as connection:
            session = await self.access.opened(connection, caller, session_id)
            return SessionDetails(
                session=session,
                worker=await self.repository.worker(connection, session_id),
                open_runs=tuple(await self.repository.open_runs(connection, session_id)),
                standing=await self.access.standing(connection, caller, session),
            )

    async def send(
        self,
        caller: Caller,
        session_id: SessionId,
        prompt: str,
        *,
        wishes: RunWishes | None = None,
        priority: int = 0,
        idempotency_key: str | None = None,
    ) -> AgentRun:
        """Queue a message to the session's agent. The same key again gives the same run; with another message it is a
        `Conflict`. While a run works, the message waits for its turn, goes into the working turn (if the agent can be
        steered, and does not end first; else it waits), or ends the working run: the run's `mode` says which."""
        checked_prompt(prompt)
        wishes = wishes or RunWishes()
        request_hash = request_hash_of(prompt, wishes) if idempotency_key else None
        run_id = RunId(new_uuid())
        [said] = await self.log.prepared([self._said(caller, run_id, prompt)])
        async with self.runs.step(session_id) as step:
            connection = step.connection
            session = await self.access.driven(connection, caller, session_id)
            if idempotency_key and (
                known := await self.repository.run_with_key(connection, session_id, idempotency_key)
            ):
                if known[1] != request_hash:
                    raise Conflict("This Idempotency-Key was used for another message; choose a new one.")
                return await self.repository.run(connection, known[0])
            if session.state is not SessionState.OPEN:
                raise Conflict("The session is closed; start a new one.")
            open_runs = await self.repository.open_runs(connection, session_id)
            if len(open_runs) >= _MOST_OPEN_RUNS:
                raise TooBusy(f"{_MOST_OPEN_RUNS} messages wait in this session; wait until the agent has read some.")
            working = next((run for run in open_runs if run.state in ACTIVE), None)
            if wishes.mode is SendMode.INTERRUPT and working is not None:
                await self.cancel_in(step, working.id)
            run = await self.repository.insert_run(
                connection,
                session,
                run_id,
                prompt,
                replace(wishes, mode=_mode(wishes, working)),
                title=title_of(prompt),
                at=self.clock.now(),
                idempotency_key=idempotency_key,
                request_hash=request_hash,
            )
            if session.owner.id != caller.principal.id:
                await self.access.shares.put_asked_by(connection, run.id, caller.principal.id)
            await self.queue.add(connection, session, run, priority=priority)
            await self.repository.touch_worker(connection, session_id, self.clock.now())
            step.events += [said, self.runs.state_event(run)]
        self.log.hint_machines()
        return run

    async def run(self, caller: Caller, run_id: RunId) -> RunDetails:
        """Raises `NotFound` for a run of somebody else's session, too."""
        async with self.database.transaction() as connection:
            run = await self.access.opened_run(connection, caller, run_id)
            place = await self.queue.place(connection, run_id)
            return RunDetails(run=run, place=place, usage=await self.models.usage_of_run(connection, run_id))

    async def runs_of(
        self, caller: Caller, session_id: SessionId, *, before: int | None = None, limit: int = 50
    ) -> Sequence[AgentRun]:
        """Newest first."""
        async with self.database.transaction() as connection:
            await self.access.opened(connection, caller, session_id)
            return await self.repository.runs(connection, session_id, before=before, limit=limit)

    async def messages(
        self, caller: Caller, session_id: SessionId, *, before: int | None = None, limit: int = 50
    ) -> Sequence[AgentMessage]:
        """The newest before a position, in order."""
        async with self.database.transaction() as connection:
            await self.access.opened(connection, caller, session_id)
            return await self.conversation.newest_messages(
                connection, session_id, before=before or _AFTER_ALL, limit=limit
            )

    async def tools(
        self, caller: Caller, run_id: RunId, *, after: int = 0, limit: int = 100
    ) -> Sequence[ToolExecution]:
        """What the run's agent did, in order."""
        async with self.database.transaction() as connection:
            run = await self.access.opened_run(connection, caller, run_id)
            return await self.conversation.tools(connection, run.session_id, run_id, after=after, limit=limit)

    async def first_event(self, run: AgentRun) -> int:
        """The number of the run's first event in its session's stream: the message that asked for it."""
        async with self.database.connection() as connection:
            [asked] = await self.conversation.messages(connection, run.session_id, run_id=run.id, limit=1)
        return asked.position

    async def at_rest(self, caller: Caller, session_id: SessionId) -> tuple[AgentSession, AgentRun]:
        """The session and its last run, for its owner to decide about the work that is left in its folder. `Conflict`
        while a run has not ended, or if there was none."""
        async with self.database.transaction() as connection:
            session = await self.access.owned(connection, caller, session_id)
            if await self.repository.open_runs(connection, session_id):
                raise Conflict("A run of this session has not ended. Wait for its end or cancel it, and decide then.")
            runs = await self.repository.runs(connection, session_id, before=None, limit=1)
        if not runs:
            raise Conflict("No run has worked in this session, so nothing is left to decide about.")
        return session, runs[0]

    async def cancel(self, caller: Caller, run_id: RunId) -> AgentRun:
        """End a run, whatever its state. One that a machine works on ends a moment later: its agent is stopped, and
        what it did so far is kept. A run that has ended stays as it is."""
        session_id = (await self._known_run(run_id)).session_id
        async with self.runs.step(session_id) as step:
            await self.access.driven_run(step.connection, caller, run_id)
            run = await self.cancel_in(step, run_id)
        self.log.hint_machines()
        return run

    async def stop(self, caller: Caller, session_id: SessionId) -> None:
        """Cancel its runs, and let its worker stop once its files are stored. The next message starts it again."""
        async with self.runs.step(session_id) as step:
            await self.access.driven(step.connection, caller, session_id)
            await self.stop_in(step, WorkerState.STOPPED)
        self.log.hint_machines()

    async def close(self, caller: Caller, session_id: SessionId) -> None:
        """Stop it for good; what was said and done stays readable."""
        async with self.runs.step(session_id) as step:
            await self.access.owned(step.connection, caller, session_id)
            await self.stop_in(step, WorkerState.STOPPED)
            await self.repository.update(step.connection, session_id, state=SessionState.CLOSED)

    async def pin(self, caller: Caller, session_id: SessionId, *, pinned: bool) -> None:
        """A pinned session's worker is not stopped for being idle."""
        async with self.database.transaction() as connection:
            await self.access.owned(connection, caller, session_id)
            await self.repository.update(connection, session_id, pinned=pinned)

    async def rename(self, caller: Caller, session_id: SessionId, title: str) -> None:
        check_title(title)
        async with self.database.transaction() as connection:
            await self.access.owned(connection, caller, session_id)
            await self.repository.update(connection, session_id, title=title)

    async def delete(self, caller: Caller, session_id: SessionId) -> None:
        """With all that was said and done in it. What its agent committed stays in the project. From here on nobody
        finds it; its rows go as soon as its machine has removed what it holds."""
        async with self.runs.step(session_id) as step:
            session = await self.access.owned(step.connection, caller, session_id)
            await self.stop_in(step, WorkerState.DELETED)
            await self.repository.update(step.connection, session_id, state=SessionState.DELETED)
            await self.audit.note(
                step.connection,
                session.project_id,
                "session.delete",
                "Deleted a session.",
                at=self.clock.now(),
                by=caller.actor,
                session_id=str(session_id),
            )

    async def _new_agent(self, connection: Connection) -> Principal:
        """Whom nobody else has used: rules and history of another agent are not for this one."""
        while True:
            name = f"session-{secrets.token_hex(4)}"
            if await self.identity.find_principal(connection, PrincipalKind.AGENT, name) is None:
                return await self.identity.ensure_principal(connection, PrincipalKind.AGENT, name)

    async def stop_in(self, step: RunStep, wanted: WorkerState, why: str = "") -> None:
        """In a step under way, for those who have checked that it may be done. `why`: for its people to read."""
        for run in await self.repository.open_runs(step.connection, step.session_id):
            await self.cancel_in(step, run.id, why)
        await self.repository.want_worker(step.connection, step.session_id, wanted, self.clock.now())

    async def cancel_in(self, step: RunStep, run_id: RunId, why: str = "") -> AgentRun:
        """As `stop_in`."""
        connection = step.connection
        machine = await self.queue.claimant(connection, run_id)
        run = await self.repository.run(connection, run_id, lock=True)
        if run.state in ENDED:
            return run
        await self.repository.request_cancel(connection, run_id, why)
        if machine is None:
            facts = RunFacts(reason="canceled", message="It was canceled while no machine worked on it.")
            return await self.runs.apply(step, run, RunState.CANCELED, facts)
        if not run.is_canceled:
            asked = LoggedEvent(
                kind="run.cancel_requested",
                run_id=run_id,
                attempt=run.attempt,
                ts=self.clock.now(),
                data={"why": why} if why else {},
            )
            step.events.append(asked)
        return await self.repository.run(connection, run_id)

    def _said(self, caller: Caller, run_id: RunId, prompt: str) -> LoggedEvent:
        return LoggedEvent(
            kind=MESSAGE_USER,
            run_id=run_id,
            attempt=0,
            ts=self.clock.now(),
            data={"message_id": f"{run_id}:prompt", "text": prompt},
            principal_id=caller.principal.id,
        )

    async def _known_run(self, run_id: RunId) -> AgentRun:
        async with self.database.connection() as connection:
            return await self.repository.run(connection, run_id)


def _mode(wishes: RunWishes, working: AgentRun | None) -> SendMode:
    """What becomes of a message: an agent that cannot be steered is not, and not by one with files."""
    asked = wishes.mode
    if asked is not SendMode.STEER:
        return asked
    if wishes.attachments:
        return SendMode.QUEUE
    adapter = None if working is None else adapter_named(working.provider)
    return asked if adapter is not None and Capability.STEER in adapter.capabilities else SendMode.QUEUE


def _folder(caller: Caller, asked: TreePath | None) -> TreePath | None:
    """A grant for one folder makes sessions in that folder alone."""
    below = caller.grant.path_prefix
    if below is None or asked is None:
        return asked or below
    if asked != below and not asked.is_below(below):
        raise Forbidden(f"This {caller.grant.source} is limited to {below}, and so are the sessions it makes.")
    return asked
