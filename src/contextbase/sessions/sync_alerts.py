"""Tells people of workers whose files could not be stored again and again. Such a worker is kept as it is."""

import logging
from dataclasses import dataclass
from typing import Final

from contextbase.db.database import Database
from contextbase.sessions.model import AgentSession
from contextbase.sessions.repository import SessionRepository
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.service import StreamService

__all__ = ["SyncAlerts"]

_log = logging.getLogger(__name__)

_AFTER: Final = 5  # failures in a row
_ALERT: Final = "worker.alert"


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncAlerts:
    database: Database
    repository: SessionRepository
    streams: StreamService

    async def failed(self, session: AgentSession, error: str) -> None:
        """Count it; from the fifth on the session says so, and its stream has an event once."""
        alert = (
            f"The files of this session could not be stored {_AFTER} times in a row, so they are kept where they are."
        )
        async with self.database.transaction() as connection:
            times = await self.repository.count_failed_sync(
                connection, session.id, after=_AFTER, alert=f"{alert} The last time: {error}"
            )
            if times == _AFTER:
                event = NewEvent(kind=_ALERT, payload={"message": alert, "error": error})
                await self.streams.append(connection, Scope.session(session.id), [event])
        if times == _AFTER:
            self.streams.hint(Scope.session(session.id))
            _log.error("a session's files cannot be stored", extra={"session_id": str(session.id), "error": error})
