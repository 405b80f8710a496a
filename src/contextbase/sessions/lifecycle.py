"""Where sessions' workers should be. The leader writes it down; each machine brings its own in line with it."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final

from contextbase.conversation.repository import ConversationRepository
from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.ids import Clock
from contextbase.sessions.model import SessionId
from contextbase.sessions.repository import SessionRepository
from contextbase.streams.model import Scope
from contextbase.streams.service import StreamService

__all__ = ["SessionLifecycle"]

_SQL: Final = load_queries("contextbase.sessions")
_BATCH: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionLifecycle:
    database: Database
    repository: SessionRepository
    streams: StreamService
    clock: Clock
    idle: timedelta = timedelta(minutes=20)  # without a message; then the worker stops
    removal: timedelta = timedelta(hours=24)  # after it stopped
    fold: timedelta = timedelta(minutes=10)  # after a run's end
    conversation: ConversationRepository = field(default_factory=ConversationRepository)
    catch_up: timedelta = timedelta(minutes=10)  # a snapshot older than this, and than the last use, is taken again

    async def keep_up(self) -> None:
        """Stop what is idle, remove what has long stopped, ask for snapshots that are missing, forget what was deleted
        and the pieces of texts that are whole.
        None of it touches a machine, and each part can be done again."""
        now = self.clock.now()
        async with self.database.transaction() as connection:
            await connection.execute(_SQL.stop_idle_workers, now - self.idle, now)
            await connection.execute(_SQL.remove_stopped_workers, now - self.removal)
            await connection.execute(_SQL.request_syncs, now - self.catch_up, now)
            rows = await connection.fetch(_SQL.deleted_sessions, _BATCH)
        await self._fold()
        for row in rows:
            await self.streams.delete(Scope.session(row["id"]))
            async with self.database.transaction() as connection:
                await self.repository.delete(connection, SessionId(row["id"]))

    async def _fold(self) -> None:
        async with self.database.transaction() as connection:
            rows = await connection.fetch(_SQL.runs_to_fold, self.fold.total_seconds(), _BATCH)
            for row in rows:
                await self.conversation.fold_deltas(connection, row["session_id"], row["id"])
            await connection.execute(_SQL.folded, [row["id"] for row in rows])
