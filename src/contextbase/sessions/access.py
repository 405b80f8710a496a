"""Who may use a session: its owner, and whom the owner lets read or drive it. An administrator may look into one,
and the audit trail says so."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from contextbase.agent_vocabulary import SessionAccessLevel, ShareLevel
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Forbidden, NotFound
from contextbase.identity.authorization import authorize
from contextbase.identity.model import Action, Caller, GrantSource
from contextbase.identity.roles import RoleScope
from contextbase.ids import Clock, PrincipalId, ProjectId
from contextbase.lru_cache import LruCache
from contextbase.role_vocabulary import Right
from contextbase.sessions.model import AgentRun, AgentSession, RunId, SessionId, SessionState
from contextbase.sessions.repository import SessionRepository, session_of_row
from contextbase.sessions.share_repository import ShareRepository

__all__ = ["SessionAccess", "SessionStanding"]

_SQL: Final = load_queries("contextbase.sessions")
_READ: Final = frozenset({Action.READ})
_IN_FILES: Final = frozenset({Action.READ, Action.WRITE})
_NOTED_FOR: Final = timedelta(minutes=10)
_MOST_NOTED: Final = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionStanding:
    """What somebody may do in a session."""

    access: SessionAccessLevel
    has_terminal: bool  # may open one while the sandbox runs


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionAccess:
    """Also the `SessionAuthorizer` of streams, and the `SessionFolders` of workspaces."""

    database: Database
    repository: SessionRepository
    audit: AuditRepository
    clock: Clock
    shares: ShareRepository = field(default_factory=ShareRepository)
    _noted: LruCache[tuple[PrincipalId, UUID], datetime] = field(
        default_factory=lambda: LruCache(_MOST_NOTED), init=False
    )

    async def may_read(self, caller: Caller, session_id: UUID) -> bool:
        """Streams ask again every few seconds: the audit trail is told of a reader every few minutes."""
        now, key = self.clock.now(), (caller.principal.id, session_id)
        noted_at = self._noted.get(key)
        is_noted = noted_at is not None and now - noted_at < _NOTED_FOR
        async with self.database.connection() if is_noted else self.database.transaction() as connection:
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
        elif not await self._is_shared(connection, caller, session):
            if not _administers(caller, session):
                raise _unknown(session_id)
            if is_noted:
                return session
            await self.note(connection, caller, session, "session.open", f"Looked into a session of {session.owner}.")
        return session

    async def driven(self, connection: Connection, caller: Caller, session_id: SessionId) -> AgentSession:
        """As `owned`, also for those whom the owner lets drive it. What they have it do is audited."""
        session = await self._found(connection, session_id, lock=True)
        if session.owner.id == caller.principal.id:
            return await self.owned(connection, caller, session_id)
        if not await self._is_shared(connection, caller, session, ShareLevel.DRIVE):
            raise _unknown(session_id)
        _check_grant(caller, session, session.actions)
        await self.note(connection, caller, session, "session.drive", f"Used a session of {session.owner}.")
        return session

    async def at_terminal(self, connection: Connection, caller: Caller, session_id: SessionId) -> AgentSession:
        """Where the caller may open a terminal: the owner, and drivers with that right in the project. Asked again and
        again, it leaves nothing in the audit trail."""
        session = await self._found(connection, session_id)
        is_owner = session.owner.id == caller.principal.id
        if not is_owner and not await self._is_shared(connection, caller, session, ShareLevel.DRIVE):
            raise _unknown(session_id)
        _check_grant(caller, session, session.actions)
        if is_owner and session.app is None:
            # A grant for the session's project is good for the session, as it is when its owner sends a message.
            caller = replace(caller, grant=replace(caller.grant, project_id=None))
        authorize(caller, Right.OPEN_TERMINAL, _terminal_scope(caller, session))
        return session

    async def standing(self, connection: Connection, caller: Caller, session: AgentSession) -> SessionStanding:
        """What somebody who may look into a session may do there."""
        try:
            await self.at_terminal(connection, caller, session.id)
            has_terminal = True
        except (NotFound, Forbidden):
            has_terminal = False
        if session.owner.id == caller.principal.id:
            access = SessionAccessLevel.OWN
        elif await self._is_shared(connection, caller, session, ShareLevel.DRIVE):
            access = SessionAccessLevel.DRIVE
        else:
            access = SessionAccessLevel.READ
        return SessionStanding(access=access, has_terminal=has_terminal)

    async def note(
        self, connection: Connection, caller: Caller, session: AgentSession, action: str, summary: str, **details: str
    ) -> None:
        """Into the trail of the session's project."""
        about = {"session_id": str(session.id), "owner": str(session.owner.id)} | details
        now = self.clock.now()
        await self.audit.note(connection, session.project_id, action, summary, at=now, by=caller.actor, **about)

    def may_reach(self, caller: Caller, session: AgentSession) -> bool:
        """Whether it is where the caller may read. A share is worth nothing without that."""
        try:
            _check_grant(caller, session, _READ)
            if session.app is not None:
                authorize(caller, Right.USE_APP, RoleScope.of_app(session.app))
        except Forbidden:
            return False
        return True

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

    async def in_folder(self, caller: Caller, agent: str, project_id: ProjectId | None) -> Caller | None:
        """The owner of a session at work in its folder, as its agent, with what both may do. None: it is no agent of
        the caller's sessions, or not in that project (None: any)."""
        if caller.grant.source is GrantSource.RUN or caller.on_behalf_of is not None:
            return None
        async with self.database.connection() as connection:
            row = await connection.fetchrow(_SQL.session_of_agent, caller.principal.id, agent)
        session = None if row is None else session_of_row(row)
        if session is None or project_id not in (None, session.project_id):
            return None
        _check_grant(caller, session, _READ)
        grant = caller.grant
        if session.app is not None:
            authorize(caller, Right.USE_APP, RoleScope.of_app(session.app))
            grant = grant.inside(session.project_id, session.folder)
        grant = replace(grant.narrowed(session.actions & _IN_FILES, session.project_id), path_prefix=session.folder)
        return replace(caller.working_as(session.agent), grant=grant, is_limited=True)

    async def opened_run(self, connection: Connection, caller: Caller, run_id: RunId) -> AgentRun:
        """As `opened`. A run of somebody else's session is answered like one that does not exist."""
        run = await self.repository.run(connection, run_id)
        with _as_unknown(run_id):
            await self.opened(connection, caller, run.session_id)
        return run

    async def driven_run(self, connection: Connection, caller: Caller, run_id: RunId) -> tuple[AgentSession, AgentRun]:
        """As `driven`."""
        run = await self.repository.run(connection, run_id)
        with _as_unknown(run_id):
            session = await self.driven(connection, caller, run.session_id)
        return session, await self.repository.run(connection, run_id)

    async def _is_shared(
        self, connection: Connection, caller: Caller, session: AgentSession, least: ShareLevel = ShareLevel.READ
    ) -> bool:
        """Only with the person: what agents do for somebody is not what that person does."""
        if caller.grant.source is GrantSource.RUN or caller.on_behalf_of is not None:
            return False
        level = await self.shares.level(connection, session.id, caller.principal.id)
        return level in (least, ShareLevel.DRIVE) and self.may_reach(caller, session)

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
    grant = caller.grant
    if session.app is not None:
        if grant.project_id not in (None, session.project_id):
            raise Forbidden(f"This {grant.source} is limited to another project.")
        grant = grant.inside(session.project_id, None)
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


def _terminal_scope(caller: Caller, session: AgentSession) -> RoleScope:
    """A session in a project is its owner's own. What an app composes is the app's: its rules hold for people there."""
    if session.app is not None:
        return RoleScope.of_app(session.app)
    if session.owner.id == caller.principal.id:
        return RoleScope.of_user(caller.principal.name)
    return RoleScope.of_project(session.project_id)


def _unknown(session_id: SessionId) -> NotFound:
    return NotFound(f"There is no session {session_id} that you may use.")
