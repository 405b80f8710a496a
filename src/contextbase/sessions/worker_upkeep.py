"""Brings this machine's session workers in line with what is wanted of them: stopped, removed, stored."""

import logging
from dataclasses import dataclass, field

from contextbase.db.database import Database
from contextbase.errors import ContextbaseError, NotFound
from contextbase.ids import Clock
from contextbase.sessions.machine_runs import MachineRuns
from contextbase.sessions.model import AgentSession, SessionState, SessionWorker, WorkerState
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.rewind_repository import RewindRepository
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.worker_host import WorkerHost
from contextbase.sessions.worker_retirement import WorkerRetirement

__all__ = ["WorkerUpkeep"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerUpkeep:
    database: Database
    repository: SessionRepository
    host: WorkerHost
    retirement: WorkerRetirement
    runs: MachineRuns
    clock: Clock
    rewinds: RewindRepository = field(default_factory=RewindRepository)

    async def sweep(self) -> None:
        """One worker in trouble does not keep the others waiting; it is tried again with the next sweep."""
        async with self.database.connection() as connection:
            workers = await self.repository.workers_of(connection, self.host.machine)
            sessions = await self.repository.of_ids(connection, {worker.session_id for worker in workers})
            retired = await self.repository.without_project(connection, sessions.keys())
            due = await self.rewinds.due_on(connection, self.host.machine)
        for worker in workers:
            session = sessions.get(worker.session_id)
            if session is None or self.runs.works_on(worker.session_id):
                continue
            try:
                if session.id in retired:
                    await self._retire(session, worker)
                    continue
                if session.id in due:
                    await self.host.catch_up(session)
                await self._attend(session, worker)
            except ContextbaseError as error:
                extra = {"session_id": str(worker.session_id), "error": error.message, "code": error.code}
                _log.warning("a session's worker could not be looked after; trying again", extra=extra)
            except Exception:  # noqa: BLE001 - the others are looked after all the same
                _log.exception("looking after a session's worker failed", extra={"session_id": str(worker.session_id)})

    async def _retire(self, session: AgentSession, worker: SessionWorker) -> None:
        if worker.container_id is not None or self.host.is_open(session.id) or session.state is SessionState.DELETED:
            await self.retirement.retire(session)

    async def _attend(self, session: AgentSession, worker: SessionWorker) -> None:
        try:
            if worker.desired_state is WorkerState.DELETED and worker.state is not WorkerState.DELETED:
                await self.host.remove(session)
            elif worker.lost_at is not None:  # a kill left its folder half-made: nobody must store that
                await self.host.folder(session)
            elif worker.desired_state is WorkerState.STOPPED and worker.state is WorkerState.RUNNING:
                await self.host.stop(session)
            elif worker.sync_is_due and worker.state is not WorkerState.DELETED:
                await self.host.sync(session, SnapshotReason.CATCH_UP)
        except NotFound:
            if not await self.host.is_gone(session):
                raise
            # Somebody removed its folder: what it had is in its last snapshot.
            async with self.database.connection() as connection:
                await self.repository.lose_worker(connection, session.id, self.clock.now())
