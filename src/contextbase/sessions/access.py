"""Who may use a session: its owner. An administrator may look into one, and the audit trail says so."""

from dataclasses import dataclass
from typing import Final
from uuid import UUID

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Forbidden, NotFound
from contextbase.identity.model import Action, Caller
from contextbase.ids import Clock
from contextbase.sessions.model import AgentSession, SessionId, SessionState
from contextbase.sessions.repository import SessionRepository

__all__ = ["SessionAccess"]

_READ: Final = frozenset({Action.READ})


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionAccess:
    """Also the `SessionAuthorizer` of streams."""

    database: Database
    repository: SessionRepository
    audit: AuditRepository
    clock: Clock

    async def may_read(self, caller: Caller, session_id: UUID) -> bool:
        async with self.database.transaction() as connection:
            try:
                await self.opened(connection, caller, SessionId(session_id))
            except (NotFound, Forbidden):
                return False
        return True

    async def opened(self, connection: Connection, caller: Caller, session_id: SessionId) -> AgentSession:
        """To look into. Raises `NotFound` for somebody else's, whether it exists or not."""
        session = await self._found(connection, session_id)
        if session.owner.id == caller.principal.id:
            _check_grant(caller, session, _READ)
        else:
            if not _administers(caller, session):
                raise _unknown(session_id)
            await self.audit.note(
                connection,
                session.project_id,
                "session.open",
                f"Looked into a session of {session.owner}.",
                at=self.clock.now(),
                by=caller.actor,
                session_id=str(session.id),
                owner=str(session.owner.id),
            )
        return session

    async def owned(self, connection: Connection, caller: Caller, session_id: SessionId) -> AgentSession:
        """To change, by its owner alone; nobody else changes what it has in the queue until the transaction ends. A
        grant that allows less than the session may do is refused: the session would do it in its stead."""
        session = await self._found(connection, session_id, lock=True)
        if session.owner.id != caller.principal.id:
            raise _unknown(session_id)
        _check_grant(caller, session, session.actions)
        return session

    async def _found(self, connection: Connection, session_id: SessionId, *, lock: bool = False) -> AgentSession:
        session = await self.repository.find(connection, session_id, lock=lock)
        if session is None or session.state is SessionState.DELETED:
            raise _unknown(session_id)
        return session


def _check_grant(caller: Caller, session: AgentSession, actions: frozenset[Action]) -> None:
    for action in sorted(actions):
        caller.require(action, session.project_id)
    below = caller.grant.path_prefix
    if below is not None and (
        session.folder is None or not (session.folder == below or session.folder.is_below(below))
    ):
        raise Forbidden(f"This {caller.grant.source} is limited to {below}, and the session is not.")


def _administers(caller: Caller, session: AgentSession) -> bool:
    grant = caller.grant
    return (
        {Action.ADMIN, Action.READ} <= grant.actions
        and grant.project_id in (None, session.project_id)
        and grant.path_prefix is None
    )


def _unknown(session_id: SessionId) -> NotFound:
    return NotFound(f"There is no session {session_id} that you may use.")
