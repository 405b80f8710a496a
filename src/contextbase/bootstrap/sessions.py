"""Sessions with agents: what every server can do for them, whichever machine works."""

from dataclasses import dataclass

from contextbase.bootstrap.foundation import Foundation
from contextbase.identity.repository import IdentityRepository
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.queue import RunQueue
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.runs import Runs
from contextbase.sessions.service import SessionService
from contextbase.streams.service import StreamService

__all__ = ["SessionServices", "session_access", "sessions_of"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionServices:
    service: SessionService
    runs: Runs
    queue: RunQueue


def session_access(foundation: Foundation) -> SessionAccess:
    return SessionAccess(
        database=foundation.database,
        repository=SessionRepository(),
        audit=foundation.audit,
        clock=foundation.clock,
    )


def sessions_of(foundation: Foundation, access: SessionAccess, streams: StreamService) -> SessionServices:
    database, repository = foundation.database, SessionRepository()
    runs = Runs(database=database, repository=repository, streams=streams)
    queue = RunQueue(database=database, repository=repository, runs=runs)
    service = SessionService(
        database=database,
        repository=repository,
        identity=IdentityRepository(),
        access=access,
        runs=runs,
        queue=queue,
        streams=streams,
        audit=foundation.audit,
        clock=foundation.clock,
    )
    return SessionServices(service=service, runs=runs, queue=queue)
