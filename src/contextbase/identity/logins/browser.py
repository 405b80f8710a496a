"""Logins of browsers: an opaque secret in a cookie, replaced now and then, good until it ends here."""

from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from contextbase.audit.model import SYSTEM_CHAIN, Actor, WayIn
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.ttl_cache import TtlCache
from contextbase.errors import Unauthenticated
from contextbase.identity.logins.model import BrowserLogin, hash_of, new_secret
from contextbase.identity.logins.repository import LoginRepository
from contextbase.identity.model import Action, Caller, Grant, GrantSource, Principal
from contextbase.identity.service import IdentityService
from contextbase.ids import Clock, PrincipalId, TokenId, new_uuid

__all__ = ["BrowserLogins", "KnownLogin"]

_LIFE: Final = timedelta(days=30)
_IDLE: Final = timedelta(days=7)
_ROTATED_AFTER: Final = timedelta(minutes=15)
_BOTH_GOOD_FOR: Final = timedelta(minutes=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class KnownLogin:
    """Who came with a cookie, and the secret that replaces it, if it is time for that."""

    caller: Caller
    login_id: UUID
    renewed: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class BrowserLogins:
    database: Database
    repository: LoginRepository
    identity: IdentityService
    audit: AuditRepository
    clock: Clock
    _known: TtlCache[object, BrowserLogin] = field(default_factory=TtlCache, init=False)

    async def start(self, connection: Connection, principal: Principal, *, how: str, origin: str) -> str:
        """The secret of a new login. What the browser had before is the browser's business: it never becomes this."""
        return await self._start(connection, principal, how=how, origin=origin)

    async def start_with_token(self, token_secret: str, *, origin: str) -> str:
        """A login that ends with the token. Raises `Unauthenticated`."""
        caller = await self.identity.authenticate(token_secret)
        async with self.database.transaction() as connection:
            return await self._start(
                connection, caller.principal, how="token", origin=origin, token_id=caller.grant.token_id
            )

    async def _start(
        self, connection: Connection, principal: Principal, *, how: str, origin: str, token_id: TokenId | None = None
    ) -> str:
        now, secret = self.clock.now(), new_secret()
        login = BrowserLogin(
            id=new_uuid(),
            principal=principal,
            token_id=token_id,
            rotated_at=now,
            expires_at=now + _LIFE,
            is_ended=False,
            is_previous=False,
        )
        await self.repository.insert_login(connection, login, hash_of(secret))
        by = Actor(way_in=WayIn.WEB_UI, principal_id=principal.id, grant=GrantSource.LOGIN, origin=origin)
        summary = f"{principal.name} logged in with a {how}."
        await self.audit.note(connection, SYSTEM_CHAIN, "login.start", summary, at=now, by=by, how=how)
        return secret

    async def caller(self, secret: str, *, origin: str = "", trace_id: str = "") -> KnownLogin:
        """Who came with a cookie; raises `Unauthenticated`, saying no more than needed."""
        secret_hash = hash_of(secret)
        login = self._known.get(secret_hash)
        if login is None:
            async with self.database.connection() as connection:
                login = await self.repository.login(connection, secret_hash)
            if login is not None:
                self._known.put(secret_hash, login)
        now = self.clock.now()
        if login is None or (login.is_previous and now - login.rotated_at > _BOTH_GOOD_FOR):
            raise _ended()
        caller = await self._caller(login, now, origin=origin, trace_id=trace_id)
        renewed = None
        if not login.is_previous and now - login.rotated_at > _ROTATED_AFTER:
            renewed = await self._rotated(login, secret_hash, now)
        return KnownLogin(caller=caller, login_id=login.id, renewed=renewed)

    async def still(self, login_id: UUID, *, origin: str = "", trace_id: str = "") -> Caller:
        """Who came with a cookie a while ago, for a request that lasts; raises `Unauthenticated` when it has ended."""
        login = self._known.get(login_id)
        if login is None:
            async with self.database.connection() as connection:
                login = await self.repository.login_by_id(connection, login_id)
            if login is None:
                raise _ended()
            self._known.put(login_id, login)
        return await self._caller(login, self.clock.now(), origin=origin, trace_id=trace_id)

    async def end(self, secret: str) -> None:
        """Log this browser out; harmless when it is."""
        async with self.database.transaction() as connection:
            whose = await self.repository.end_login(connection, hash_of(secret), self.clock.now())
            if whose is not None:
                await self._note_end(connection, whose, "Logged out.")
        self._known.forget()

    async def end_all(self, connection: Connection, person: PrincipalId, *, by: Actor, but: UUID | None = None) -> int:
        """Log somebody out everywhere, but for one login. Call `forget` after the transaction."""
        now = self.clock.now()
        ended = await self.repository.end_logins_of(connection, person, now, but=but)
        if ended:
            summary = f"Ended {ended} browser logins."
            await self.audit.note(connection, SYSTEM_CHAIN, "login.end", summary, at=now, by=by, about=str(person))
        return ended

    async def end_own(self, caller: Caller) -> int:
        """Log the caller out everywhere."""
        async with self.database.transaction() as connection:
            ended = await self.end_all(connection, caller.principal.id, by=caller.actor)
        self._known.forget()
        return ended

    def forget(self) -> None:
        self._known.forget()

    async def prune(self) -> None:
        """Remove what ended or was counted long ago."""
        now = self.clock.now()
        async with self.database.transaction() as connection:
            await self.repository.prune(
                connection, failures_before=now - timedelta(days=1), logins_before=now - timedelta(days=90)
            )

    async def _caller(self, login: BrowserLogin, now: datetime, *, origin: str, trace_id: str) -> Caller:
        if login.is_ended or login.expires_at <= now or now - login.rotated_at > _IDLE:
            raise _ended()
        if login.token_id is not None:
            return await self.identity.with_token_id(
                login.token_id, GrantSource.LOGIN, origin=origin, trace_id=trace_id
            )
        grant = Grant(source=GrantSource.LOGIN, actions=frozenset(Action))
        caller = Caller(principal=login.principal, grant=grant, way_in=WayIn.WEB_UI, origin=origin, trace_id=trace_id)
        return await self.identity.with_account(caller)

    async def _rotated(self, login: BrowserLogin, old: bytes, now: datetime) -> str | None:
        secret = new_secret()
        async with self.database.transaction() as connection:
            if not await self.repository.rotate(connection, login.id, old, hash_of(secret), now):
                return None
        self._known.put(old, replace(login, is_previous=True, rotated_at=now))
        return secret

    async def _note_end(self, connection: Connection, whose: PrincipalId, summary: str) -> None:
        by = Actor(way_in=WayIn.WEB_UI, principal_id=whose, grant=GrantSource.LOGIN)
        await self.audit.note(connection, SYSTEM_CHAIN, "login.end", summary, at=self.clock.now(), by=by)


def _ended() -> Unauthenticated:
    return Unauthenticated("You are logged out; log in again.")
