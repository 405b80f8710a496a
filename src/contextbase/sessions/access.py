"""Who may use a session: its owner. An administrator may look into one, and the audit trail says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Forbidden, NotFound
from contextbase.identity.authorization import authorize
from contextbase.identity.model import Action, Caller
from contextbase.identity.roles import RoleScope
from contextbase.ids import Clock, PrincipalId
from contextbase.lru_cache import LruCache
from contextbase.role_vocabulary import Right
from contextbase.sessions.model import AgentRun, AgentSession, RunId, SessionId, SessionState
from contextbase.sessions.repository import SessionRepository

__all__ = ["SessionAccess"]

_READ: Final = frozenset({Action.READ})
_NOTED_FOR: Final = timedelta(minutes=10)
_MOST_NOTED: Final = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionAccess:
    """Also the `SessionAuthorizer` of streams."""

    database: Database
    repository: SessionRepository
    audit: AuditRepository
    clock: Clock
    _noted: LruCache[tuple[PrincipalId, UUID], datetime] = field(
        default_factory=lambda: LruCache(_MOST_NOTED), init=False
    )

    async def may_read(self, caller: Caller, session_id: UUID) -> bool:
        """Streams ask again every few seconds: the audit trail is told of a reader every few minutes."""
        now, key = self.clock.now(), (caller.principal.id, session_id)
        noted_at = self._noted.get(key)
        is_noted = noted_at is not None and now - noted_at < _NOTED_FOR
        async with self.database.transaction() as connection:
            try:
                await self._opened(connection, caller, SessionId(session_id), is_noted=is_noted)
            except (NotFound, Forbidden):
                return False
        if not is_noted:
            self._noted.put(key, now)
        return True

    async def opened(self, connection: Connection, caller: Caller, session_id: SessionId) -> AgentSession:
        """To look into. Raises `NotFound` for somebody else's, whether it exists or not."""
        return await self._opened(connection, caller, session_id, is_noted=False)

    async def _opened(
        self, connection: Connection, caller: Caller, session_id: SessionId, *, is_noted: bool
    ) -> AgentSession:
        session = await self._found(connection, session_id)
        if session.owner.id == caller.principal.id:
            _check_grant(caller, session, _READ)
        else:
            if not _administers(caller, session):
                raise _unknown(session_id)
            if is_noted:
                return session
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
        if session.app is not None:
            authorize(caller, Right.USE_APP, RoleScope.of_app(session.app))
        return session

    async def opened_run(self, connection: Connection, caller: Caller, run_id: RunId) -> AgentRun:
        """As `opened`. A run of somebody else's session is answered like one that does not exist."""
        run = await self.repository.run(connection, run_id)
        with _as_unknown(run_id):
            await self.opened(connection, caller, run.session_id)
        return run

    async def owned_run(self, connection: Connection, caller: Caller, run_id: RunId) -> tuple[AgentSession, AgentRun]:
        """As `owned`."""
        run = await self.repository.run(connection, run_id)
        with _as_unknown(run_id):
            session = await self.owned(connection, caller, run.session_id)
        return session, await self.repository.run(connection, run_id)

    async def _found(self, connection: Connection, session_id: SessionId, *, lock: bool = False) -> AgentSession:
        session = await self.repository.find(connection, session_id, lock=lock)
        if session is None or session.state is SessionState.DELETED:
            raise _unknown(session_id)
        return session


@contextmanager
def _as_unknown(run_id: RunId) -> Iterator[None]:
    try:
        yield
    except NotFound:
        raise NotFound(f"There is no run {run_id}.") from None


def _check_grant(caller: Caller, session: AgentSession, actions: frozenset[Action]) -> None:
    # Whoever loses the role to use an app keeps what was said in its sessions, and can do nothing more there.
    grant = caller.grant if session.app is None else caller.grant.inside(session.project_id, None)
    for action in sorted(actions):
        grant.require(action, session.project_id)
    below = caller.grant.path_prefix
    if below is not None and (
        session.folder is None or not (session.folder == below or session.folder.is_below(below))
    ):
        raise Forbidden(f"This {caller.grant.source} is limited to {below}, and the session is not.")


def _administers(caller: Caller, session: AgentSession) -> bool:
    grant = caller.grant
    may = grant.allows(Action.ADMIN, session.project_id) and grant.allows(Action.READ, session.project_id)
    return may and grant.path_prefix is None


def _unknown(session_id: SessionId) -> NotFound:
    return NotFound(f"There is no session {session_id} that you may use.")
