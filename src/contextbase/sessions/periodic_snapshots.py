"""Stores a session's state every few minutes while its agent works."""

import asyncio
import logging
from datetime import timedelta

from contextbase.errors import ContextbaseError
from contextbase.sessions.model import AgentSession
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.worker_host import WorkerHost

__all__ = ["snapshot_every"]

_log = logging.getLogger(__name__)


async def snapshot_every(interval: timedelta, host: WorkerHost, session: AgentSession) -> None:
    """Until it is cancelled. A snapshot that fails does not disturb the run: the next one is tried in its turn, and the
    one at the run's end must work."""
    while True:
        await asyncio.sleep(interval.total_seconds())
        try:
            await host.sync(session, SnapshotReason.PERIODIC)
        except ContextbaseError as error:
            extra = {"session_id": str(session.id), "error": error.message, "code": error.code}
            _log.warning("a session could not be stored while its agent works; trying again", extra=extra)
        except Exception:  # noqa: BLE001 - whatever it is, work that is never stored again may be lost
            _log.exception("storing a session while its agent works failed", extra={"session_id": str(session.id)})
