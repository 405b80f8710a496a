"""Sessions, runs and workers in PostgreSQL. Every method works in the caller's transaction."""

import json
from collections.abc import Collection, Mapping, Sequence
from datetime import datetime
from typing import Final

import asyncpg

from contextbase.agent_vocabulary import ExecutionProfile
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.errors import LeaseLost, NotFound
from contextbase.identity.model import Action, Principal, PrincipalKind
from contextbase.ids import PrincipalId, ProjectId, TreePath
from contextbase.sessions.model import (
    AgentRun,
    AgentSession,
    Land,
    RunFacts,
    RunId,
    RunWishes,
    SessionId,
    SessionRequest,
    SessionState,
    SessionWorker,
    SyncStatus,
    WorkerState,
)
from contextbase.sessions.states import RunState, check_move
from contextbase.vocabulary import SendMode
from contextbase.wire.agent_config import WorkspaceKind

__all__ = ["SessionRepository", "run_of_row"]

_SQL: Final = load_queries("contextbase.sessions")
_SESSION: Final = RowShape(
    AgentSession,
    folder=TreePath.stored,
    options=json.loads,
    land=Land,
    profile=ExecutionProfile,
    state=SessionState,
    sdk_session_ids=json.loads,
    workspace_kind=WorkspaceKind,
)
_RUN: Final = RowShape(
    AgentRun, options=json.loads, state=RunState, phases=json.loads, landed=json.loads, mode=SendMode
)
_WORKER: Final = RowShape(SessionWorker, state=WorkerState, desired_state=WorkerState, last_sync_status=SyncStatus)
_NO_FACTS: Final = RunFacts()
_LONGEST_MESSAGE: Final = 2000


class SessionRepository:
    async def insert(
        self,
        connection: Connection,
        session_id: SessionId,
        *,
        owner: Principal,
        agent: Principal,
        request: SessionRequest,
        actions: frozenset[Action],
        chat_id: str | None = None,
    ) -> None:
        await connection.execute(
            _SQL.insert_session,
            session_id,
            owner.id,
            agent.id,
            request.project_id,
            request.folder,
            sorted(actions),
            request.provider,
            request.model,
            json.dumps(dict(request.options)),
            request.land,
            request.title,
            chat_id,
            request.profile,
        )

    async def find(self, connection: Connection, session_id: SessionId, *, lock: bool = False) -> AgentSession | None:
        """Also a deleted one. With `lock` nobody else changes what it has in the queue until the transaction ends."""
        row = await connection.fetchrow(_SQL.lock_session if lock else _SQL.session_by_id, session_id)
        return None if row is None else session_of_row(row)

    async def of_chat(self, connection: Connection, owner: PrincipalId, chat_id: str) -> AgentSession | None:
        row = await connection.fetchrow(_SQL.session_by_chat, owner, chat_id)
        return None if row is None else session_of_row(row)

    async def of_ids(self, connection: Connection, ids: Collection[SessionId]) -> dict[SessionId, AgentSession]:
        sessions = map(session_of_row, await connection.fetch(_SQL.sessions_by_id, list(ids)))
        return {session.id: session for session in sessions}

    async def of_owner(
        self,
        connection: Connection,
        owner: PrincipalId,
        *,
        project_id: ProjectId | None,
        before: SessionId | None,
        limit: int,
        alerted: bool,
    ) -> list[AgentSession]:
        """Newest first. `alerted`: only those whose files cannot be stored."""
        rows = await connection.fetch(_SQL.sessions_of_owner, owner, before, project_id, limit, alerted)
        return list(map(session_of_row, rows))

    async def update(
        self,
        connection: Connection,
        session_id: SessionId,
        *,
        state: SessionState | None = None,
        pinned: bool | None = None,
        title: str | None = None,
    ) -> None:
        await connection.execute(_SQL.update_session, session_id, state, pinned, title)

    async def sdk_session_ids(self, connection: Connection, session_id: SessionId) -> Mapping[str, str]:
        """As they are now."""
        found: dict[str, str] = json.loads(await connection.fetchval(_SQL.sdk_session_ids, session_id) or "{}")
        return found

    async def put_sdk_session(
        self, connection: Connection, session_id: SessionId, provider: str, sdk_session_id: str
    ) -> None:
        """What the provider's CLI calls the conversation, so that it can resume it."""
        await connection.execute(_SQL.put_sdk_session, session_id, provider, sdk_session_id)

    async def delete(self, connection: Connection, session_id: SessionId) -> None:
        """With its runs, messages and snapshots; its stream of events is the caller's business."""
        await connection.execute(_SQL.delete_session, session_id)

    async def insert_run(
        self,
        connection: Connection,
        session: AgentSession,
        run_id: RunId,
        prompt: str,
        wishes: RunWishes,
        *,
        title: str,
        at: datetime,
        idempotency_key: str | None = None,
        request_hash: bytes | None = None,
    ) -> AgentRun:
        """The session must be locked."""
        number = await connection.fetchval(_SQL.take_run_number, session.id, at, title)
        await connection.execute(
            _SQL.insert_run,
            run_id,
            session.id,
            number,
            prompt,
            wishes.provider or session.provider,
            wishes.model or session.model,
            wishes.profile or session.profile,
            json.dumps(dict(wishes.options)),
            idempotency_key,
            request_hash,
            wishes.mode,
        )
        if files := wishes.attachments:
            await connection.execute(
                _SQL.insert_attachments,
                run_id,
                list(range(len(files))),
                [file.name for file in files],
                [file.media_type for file in files],
                [file.size for file in files],
                [file.hash for file in files],
            )
        return await self.run(connection, run_id)

    async def run_with_key(self, connection: Connection, session_id: SessionId, key: str) -> tuple[RunId, bytes] | None:
        """The run that was asked for with a key, and the hash of that request."""
        row = await connection.fetchrow(_SQL.run_by_key, session_id, key)
        return None if row is None else (RunId(row["id"]), row["request_hash"])

    async def run(self, connection: Connection, run_id: RunId, *, lock: bool = False) -> AgentRun:
        """Raises `NotFound`."""
        row = await connection.fetchrow(_SQL.lock_run if lock else _SQL.run_by_id, run_id)
        if row is None:
            raise NotFound(f"There is no run {run_id}.")
        return run_of_row(row)

    async def locked_runs(self, connection: Connection, run_ids: Sequence[RunId]) -> dict[RunId, AgentRun]:
        """Those of them that exist."""
        rows = await connection.fetch(_SQL.lock_runs, run_ids)
        return {run.id: run for run in map(run_of_row, rows)}

    async def runs(
        self, connection: Connection, session_id: SessionId, *, before: int | None, limit: int
    ) -> list[AgentRun]:
        """Newest first."""
        return list(map(run_of_row, await connection.fetch(_SQL.runs_of_session, session_id, before, limit)))

    async def shown_runs(
        self, connection: Connection, session_id: SessionId, *, before: int | None, limit: int
    ) -> list[AgentRun]:
        """Newest first, without those behind which the conversation went back."""
        return list(map(run_of_row, await connection.fetch(_SQL.shown_runs_of_session, session_id, before, limit)))

    async def open_runs(self, connection: Connection, session_id: SessionId) -> list[AgentRun]:
        """Those that have not ended, the oldest first."""
        return list(map(run_of_row, await connection.fetch(_SQL.open_runs_of_session, session_id)))

    async def move(
        self, connection: Connection, run: AgentRun, after: RunState, facts: RunFacts = _NO_FACTS
    ) -> AgentRun:
        """Raises `LeaseLost` when the run is in another state or at another attempt by now."""
        check_move(run.state, after)
        row = await connection.fetchrow(
            _SQL.move_run,
            run.id,
            run.attempt,
            run.state,
            after,
            facts.reason,
            facts.message and facts.message[:_LONGEST_MESSAGE],
            facts.runtime_version,
            facts.image,
            facts.cli_version,
            _json(facts.landed),
        )
        if row is None:
            raise LeaseLost(f"The run {run.id} is not '{run.state}' at attempt {run.attempt} any more; leave it alone.")
        return run_of_row(row)

    async def put_facts(self, connection: Connection, run_id: RunId, attempt: int, facts: RunFacts) -> None:
        await connection.execute(
            _SQL.put_run_facts,
            run_id,
            attempt,
            facts.runtime_version,
            facts.image,
            facts.cli_version,
            _json(facts.landed),
        )

    async def without_leave(self, connection: Connection) -> Sequence[SessionId]:
        """Those at work for people who may not have that any more."""
        return [SessionId(row["id"]) for row in await connection.fetch(_SQL.sessions_without_leave)]

    async def request_cancel(self, connection: Connection, run_id: RunId, why: str = "") -> None:
        await connection.execute(_SQL.request_cancel, run_id, why or None)

    async def is_canceled(self, connection: Connection, run_id: RunId) -> bool:
        """True also for a run that is gone."""
        return await connection.fetchval(_SQL.is_canceled, run_id) is not False

    async def worker(self, connection: Connection, session_id: SessionId) -> SessionWorker | None:
        row = await connection.fetchrow(_SQL.worker_by_session, session_id)
        return None if row is None else worker_of_row(row)

    async def workers_of(self, connection: Connection, machine: str) -> Sequence[SessionWorker]:
        """All that a machine holds, to bring in line with what is wanted of them."""
        return list(map(worker_of_row, await connection.fetch(_SQL.workers_of_machine, machine)))

    async def put_worker(
        self,
        connection: Connection,
        session_id: SessionId,
        *,
        machine: str,
        container_id: str | None,
        workspace_s3_prefix: str,
        executor_version: str | None,
        at: datetime,
    ) -> None:
        """A machine has the session's folder and sandbox now, and they work."""
        await connection.execute(
            _SQL.put_worker, session_id, machine, container_id, workspace_s3_prefix, executor_version, at
        )

    async def touch_worker(self, connection: Connection, session_id: SessionId, at: datetime) -> None:
        """Somebody uses it: it should run."""
        await connection.execute(_SQL.touch_worker, session_id, at)

    async def use_worker(self, connection: Connection, session_id: SessionId, at: datetime) -> None:
        """Somebody works in it, beside its agent: it is not idle."""
        await connection.execute(_SQL.use_worker, session_id, at)

    async def put_sync(
        self,
        connection: Connection,
        session_id: SessionId,
        status: SyncStatus,
        *,
        at: datetime | None = None,
        error: str | None = None,
    ) -> None:
        """SUCCESS: a snapshot was stored and verified at that time. FAILED needs the error."""
        await connection.execute(_SQL.sync_worker, session_id, status, error, at)

    async def alerts(self, connection: Connection) -> list[tuple[SessionId, str]]:
        """Sessions whose files cannot be stored, and what is wrong."""
        return [(SessionId(row["session_id"]), row["alert"]) for row in await connection.fetch(_SQL.session_alerts)]

    async def count_failed_sync(self, connection: Connection, session_id: SessionId, *, after: int, alert: str) -> int:
        """How many there were in a row; 0: it has no worker."""
        return await connection.fetchval(_SQL.count_failed_sync, session_id, after, alert) or 0

    async def settle_worker(
        self, connection: Connection, session_id: SessionId, state: WorkerState, at: datetime
    ) -> None:
        """A machine stopped or removed it. The schema refuses this for a worker whose files are not stored."""
        await connection.execute(_SQL.settle_worker, session_id, state, at)

    async def lose_worker(self, connection: Connection, session_id: SessionId, at: datetime) -> None:
        """Its sandbox or its machine is gone, by itself."""
        await connection.execute(_SQL.lose_worker, session_id, at)

    async def end_worker_sandbox(self, connection: Connection, session_id: SessionId) -> None:
        """Its sandbox is gone; what else its machine has of it stays."""
        await connection.execute(_SQL.end_worker_sandbox, session_id)

    async def without_project(self, connection: Connection, ids: Collection[SessionId]) -> frozenset[SessionId]:
        """Those whose project was deleted."""
        rows = await connection.fetch(_SQL.sessions_without_project, list(ids))
        return frozenset(SessionId(row["id"]) for row in rows)

    async def remake_worker(self, connection: Connection, session_id: SessionId, at: datetime) -> None:
        """Its folder is not whole until `put_worker`."""
        await connection.execute(_SQL.remake_worker, session_id, at)

    async def want_worker(
        self, connection: Connection, session_id: SessionId, state: WorkerState, at: datetime | None = None
    ) -> None:
        """What should become of it; before it stops it is to be synced, as of that time."""
        await connection.execute(_SQL.want_worker, session_id, state, at)

    async def request_sync(self, connection: Connection, session_id: SessionId, at: datetime) -> None:
        await connection.execute(_SQL.request_sync, session_id, at)


def _json(value: object) -> str | None:
    return None if value is None else json.dumps(value)


def session_of_row(row: asyncpg.Record) -> AgentSession:
    return _SESSION(
        row,
        owner=Principal.of_row(row, "owner_"),
        agent=Principal(id=PrincipalId(row["agent_id"]), kind=PrincipalKind.AGENT, name=row["agent_name"]),
        actions=frozenset(map(Action, row["actions"])),
    )


def run_of_row(row: asyncpg.Record) -> AgentRun:
    return _RUN(row)


def worker_of_row(row: asyncpg.Record) -> SessionWorker:
    return _WORKER(row)
