"""The rows of session workers on this machine: where each is, in which state, and when it was stored."""

from dataclasses import dataclass
from datetime import datetime

from contextbase.db.database import Database
from contextbase.errors import NotFound
from contextbase.ids import Clock
from contextbase.sandbox.model import SandboxId
from contextbase.sessions.app_folder import AppFolders
from contextbase.sessions.model import AgentSession, SessionId, SessionWorker, SyncStatus, WorkerState
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.sync_alerts import SyncAlerts

__all__ = ["WorkerRows"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerRows:
    database: Database
    repository: SessionRepository
    app_folders: AppFolders
    alerts: SyncAlerts
    clock: Clock
    machine: str

    async def find(self, session_id: SessionId) -> SessionWorker | None:
        async with self.database.connection() as connection:
            return await self.repository.worker(connection, session_id)

    async def have_here(self, session: AgentSession) -> bool:
        """Whether this machine has the session's folder, whole: a folder that was made and not yet filled is not."""
        worker = await self.find(session.id)
        is_ours = worker is not None and worker.machine == self.machine and worker.lost_at is None
        return is_ours and worker is not None and worker.state is not WorkerState.DELETED

    async def have_whole(self, session: AgentSession) -> bool:
        """False: its folder is being made again."""
        worker = await self.find(session.id)
        return worker is None or worker.lost_at is None

    async def put(self, session: AgentSession, sandbox_id: SandboxId | None, version: str | None) -> None:
        """`version`: of the executor."""
        prefix = await self._prefix(session)  # before a connection is held: it takes one of its own
        async with self.database.connection() as connection:
            await self.repository.put_worker(
                connection,
                session.id,
                machine=self.machine,
                container_id=None if sandbox_id is None else str(sandbox_id),
                workspace_s3_prefix=prefix,
                executor_version=version,
                at=self.clock.now(),
            )

    async def settle(self, session: AgentSession, state: WorkerState) -> None:
        async with self.database.connection() as connection:
            await self.repository.settle_worker(connection, session.id, state, self.clock.now())

    async def lose(self, session: AgentSession) -> None:
        """It is not here any more, until `put` says so."""
        async with self.database.connection() as connection:
            await self.repository.lose_worker(connection, session.id, self.clock.now())

    async def lose_removed(self, session: AgentSession) -> None:
        """As `lose`, for a folder that was not found. `NotFound` if only its project is gone: it may have work."""
        if await self.has_no_project(session):
            raise NotFound("The session's project was deleted.")
        await self.lose(session)

    async def has_no_project(self, session: AgentSession) -> bool:
        """Whether the session's project was deleted: then its folder is not found either, and may be there still."""
        async with self.database.connection() as connection:
            return bool(await self.repository.without_project(connection, {session.id}))

    async def end_sandbox(self, session: AgentSession) -> None:
        """Its folder is here still."""
        async with self.database.connection() as connection:
            await self.repository.end_worker_sandbox(connection, session.id)

    async def remake(self, session: AgentSession) -> None:
        """Its folder is made again here, and is not whole until `put` says so. Other than with `lose`, the session's
        next run comes to this machine."""
        async with self.database.connection() as connection:
            await self.repository.remake_worker(connection, session.id, self.clock.now())

    async def put_sync(
        self, session: AgentSession, status: SyncStatus, *, at: datetime | None = None, error: str | None = None
    ) -> None:
        async with self.database.connection() as connection:
            await self.repository.put_sync(connection, session.id, status, at=at, error=error)
        if error is not None:
            await self.alerts.failed(session, error)

    async def _prefix(self, session: AgentSession) -> str:
        """Where the session's own files appear to people who browse files."""
        if session.app is not None:
            return await self.app_folders.prefix(session)
        return f"project/{session.project_id}/{session.owner.name}/session/{session.id}/workspace"
