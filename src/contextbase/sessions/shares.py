"""Sharing sessions: with whom, how far, until when. A session is its owner's alone until the owner says otherwise."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextbase.agent_vocabulary import ShareLevel
from contextbase.audit.model import WayIn
from contextbase.db.database import Connection, Database
from contextbase.errors import InvalidInput, NotFound
from contextbase.identity.model import Action, Caller, Grant, GrantSource, Principal, PrincipalKind
from contextbase.identity.people.ports import Narrowing
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import Clock, PrincipalId, ProjectId
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.model import AgentSession, SessionId
from contextbase.sessions.share_repository import SessionShare

__all__ = ["SessionSharing"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionSharing:
    database: Database
    access: SessionAccess
    identity: IdentityRepository
    narrowing: Narrowing
    clock: Clock

    async def share(
        self, caller: Caller, session_id: SessionId, slug: str, level: ShareLevel
    ) -> Sequence[SessionShare]:
        """Let a person read or drive a session of the caller's; sharing again changes the level. Raises `NotFound` for
        somebody who may not read where the session works, whether they exist or not."""
        async with self.database.transaction() as connection:
            session = await self.access.owned(connection, caller, session_id)
            if caller.principal.is_user(slug):
                raise InvalidInput("The session is yours already.")
            person = await self._person(connection, session, slug)
            before = await self.access.shares.level(connection, session_id, person)
            if before is not level:
                now = self.clock.now()
                await self.access.shares.put(connection, session_id, person, level, by=caller.principal.id, at=now)
                summary = f"Let {slug} {level} a session."
                await self.access.note(connection, caller, session, "session.share", summary, about=slug, level=level)
            shares = await self.access.shares.of_session(connection, session_id)
        if before is ShareLevel.DRIVE and level is not before:
            await self.narrowing.narrowed()
        return shares

    async def unshare(self, caller: Caller, session_id: SessionId, slug: str) -> None:
        """Take it back, within a second: open streams end, and runs that the person asked for are canceled. People may
        also leave a session that was shared with them. Without a share nothing happens."""
        async with self.database.transaction() as connection:
            if caller.principal.is_user(slug):
                session, person = await self.access.opened(connection, caller, session_id), caller.principal.id
            else:
                session = await self.access.owned(connection, caller, session_id)
                found = await self.identity.find_principal(connection, PrincipalKind.USER, slug)
                if found is None:
                    return
                person = found.id
            if await self.access.shares.delete(connection, session_id, person):
                summary = f"Does not share a session with {slug} any more."
                await self.access.note(connection, caller, session, "session.unshare", summary, about=slug)
        await self.narrowing.narrowed()

    async def list(self, caller: Caller, session_id: SessionId) -> Sequence[SessionShare]:
        """Whom it is shared with; those whom it is shared with see themselves."""
        async with self.database.transaction() as connection:
            session = await self.access.opened(connection, caller, session_id)
            shares = await self.access.shares.of_session(connection, session_id)
            own = await self.access.shares.level(connection, session_id, caller.principal.id)
        is_guest = own is not None and session.owner.id != caller.principal.id
        return [share for share in shares if share.user == caller.principal.name] if is_guest else shares

    async def with_caller(
        self, caller: Caller, *, project_id: ProjectId | None = None, before: SessionId | None = None, limit: int = 50
    ) -> tuple[Sequence[AgentSession], SessionId | None]:
        """Sessions that others share with the caller, newest first, and where the next page begins."""
        project_id = project_id or caller.grant.project_id
        caller.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            found = await self.access.shares.shared_with(
                connection, caller.principal.id, project_id=project_id, before=before, limit=limit + 1
            )
        shown = [session for session in found[:limit] if self.access.may_reach(caller, session)]
        return shown, found[limit - 1].id if len(found) > limit else None

    async def _person(self, connection: Connection, session: AgentSession, slug: str) -> PrincipalId:
        found = await self.access.shares.person(connection, slug)
        if found is not None:
            accounts = await self.identity.accounts(connection, {found})
            if found not in accounts:  # the owner of all has no roles, and may read everywhere
                return found
            grant = Grant(source=GrantSource.LOGIN, actions=frozenset({Action.READ})).with_rights(
                accounts[found].rights
            )
            principal = Principal(id=found, kind=PrincipalKind.USER, name=slug)
            if self.access.may_reach(Caller(principal=principal, grant=grant, way_in=WayIn.WEB_UI), session):
                return found
        raise NotFound(
            f"There is no person {slug[:120]} who may read where this session works. Give them a role first."
        )
