"""Sessions and runs that work for people who may not have them work any more."""

from dataclasses import dataclass

from contextbase.db.database import Database
from contextbase.sessions.model import WorkerState
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.service import SessionService
from contextbase.sessions.share_repository import ShareRepository

__all__ = ["SessionNarrowing"]

_LOST = "It was canceled because its owner was disabled, or may not work here any more."
_NOT_SHARED = "It was canceled because whoever asked for it may not use this session any more."


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionNarrowing:
    """A `Narrowing`: who is disabled or loses a role or a share has nothing at work any more. What the agents did so
    far is kept."""

    database: Database
    repository: SessionRepository
    shares: ShareRepository
    service: SessionService

    async def narrowed(self) -> None:
        async with self.database.connection() as connection:
            stopped = await self.repository.without_leave(connection)
            canceled = await self.shares.runs_without_leave(connection)
        for session_id in stopped:
            async with self.service.runs.step(session_id) as step:
                await self.repository.find(step.connection, session_id, lock=True)
                await self.service.stop_in(step, WorkerState.STOPPED, _LOST)
        for session_id, run_id in canceled:
            async with self.service.runs.step(session_id) as step:
                await self.repository.find(step.connection, session_id, lock=True)
                await self.service.cancel_in(step, run_id, _NOT_SHARED)
        if stopped or canceled:
            self.service.log.hint_machines()
