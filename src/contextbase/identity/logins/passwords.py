"""Logging in with a password, choosing one, and what slows guessing down.

Nothing here tells whether a login name exists: not the answer, not the time it takes, not whether it is locked."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

from contextbase.db.database import Connection, Database
from contextbase.errors import Forbidden, TooManyAttempts, Unauthenticated
from contextbase.identity.authorization import authorize
from contextbase.identity.logins.browser import BrowserLogins
from contextbase.identity.logins.hashing import PasswordHashing, check_password
from contextbase.identity.logins.model import PasswordLink, hash_of, new_secret
from contextbase.identity.logins.repository import LoginRepository
from contextbase.identity.model import Action, Caller
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.roles import PLATFORM

__all__ = ["PasswordService"]

_FREE_BY_NAME: Final = 5
_FREE_BY_ADDRESS: Final = 50  # many people may share one
_LONGEST_WAIT: Final = timedelta(minutes=15)
_FORGOTTEN_AFTER: Final = timedelta(hours=24)
_LINK_LIFE: Final = timedelta(days=3)


@dataclass(frozen=True, kw_only=True, slots=True)
class PasswordService:
    parts: PeopleParts
    repository: LoginRepository
    logins: BrowserLogins
    hashing: PasswordHashing

    async def log_in(self, login_name: str, password: str, *, origin: str) -> str:
        """The secret of a new browser login. Raises `Unauthenticated`, and `TooManyAttempts` after too many failures
        in a row, by name or by address: then the right password is not looked at either."""
        by_name, by_address = _key("name", login_name.lower()), _key("address", origin)
        now = self.parts.clock.now()
        async with self._database.transaction() as connection:
            await self._refuse_too_many(connection, {by_name: _FREE_BY_NAME, by_address: _FREE_BY_ADDRESS}, now)
            # Counted before the password is looked at: many attempts at once get no more guesses than one by one.
            for key in sorted((by_name, by_address)):
                await self.repository.count_attempt(connection, key, now, _FORGOTTEN_AFTER)
            found = await self.repository.person(connection, login_name)
        principal, stored, is_barred = (None, None, True) if found is None else found
        matches = await self.hashing.matches(stored, password)
        if principal is None or stored is None or is_barred or not matches:
            raise _wrong()
        rehashed = await self.hashing.hash(password) if self.hashing.is_outdated(stored) else None
        async with self._database.transaction() as connection:
            if rehashed is not None:
                await self.repository.replace_hash(connection, principal.id, stored, rehashed)
            if await self.repository.password(connection, principal.id) not in (stored, rehashed):
                raise _wrong()  # it was changed or taken away meanwhile
            await self.repository.forgive(connection, by_name)
            await self.repository.take_back_attempt(connection, by_address)
            return await self.logins.start(connection, principal, how="password", origin=origin)

    async def change(self, caller: Caller, old: str, new: str, *, keep: UUID | None = None) -> int:
        """One's own. It ends every other browser login. Raises `Unauthenticated` when the old one is wrong."""
        key, now = _key("change", str(caller.principal.id)), self.parts.clock.now()
        async with self._database.transaction() as connection:
            person = await self.parts.person(connection, caller.principal.name)
            await self._refuse_too_many(connection, {key: _FREE_BY_NAME}, now)
            await self.repository.count_attempt(connection, key, now, _FORGOTTEN_AFTER)
            stored = await self.repository.password(connection, person.id)
        if person.id != caller.principal.id or not await self.hashing.matches(stored, old):
            raise Unauthenticated("The old password is wrong.")
        check_password(new, person.login_name)
        hashed = await self.hashing.hash(new)
        async with self._database.transaction() as connection:
            await self.repository.forgive(connection, key)
            await self.repository.put_password(connection, person.id, hashed, now)
            await self.repository.use_links_of(connection, person.id, now)
            ended = await self.logins.end_all(connection, person.id, by=caller.actor, but=keep)
            await self.parts.note(connection, caller, "password.change", "Changed their password.", about=person.slug)
        self.logins.forget()
        return ended

    async def make_link(self, caller: Caller, slug: str, *, reset: bool) -> PasswordLink:
        """An invitation; or, with `reset`, a new start: the old password and the links to login providers are
        gone, and every browser is logged out. The
        links that were made before are no good any more. For administrators of the platform."""
        authorize(caller, Action.ADMIN, PLATFORM)
        now, secret = self.parts.clock.now(), new_secret()
        link = PasswordLink(secret=secret, expires_at=now + _LINK_LIFE)
        async with self._database.transaction() as connection:
            person = await self.parts.person(connection, slug)
            if person.is_owner and not caller.principal.is_owner:
                raise Forbidden("Only the owner changes the owner's password.")
            if person.is_service:
                raise Forbidden(f"{slug} is a service: it has tokens, and never logs in.")
            await self.repository.use_links_of(connection, person.id, now)
            await self.repository.put_link(
                connection, person.id, hash_of(secret), by=caller.principal.id, expires_at=link.expires_at
            )
            if reset:
                await self.repository.delete_password(connection, person.id)
                await self.repository.delete_identities(connection, person.id)
                await self.logins.end_all(connection, person.id, by=caller.actor)
            action, did = ("password.reset", "Reset the password of") if reset else ("user.invite", "Invited")
            await self.parts.note(connection, caller, action, f"{did} {slug}.", about=slug)
        self.logins.forget()
        return link

    async def use_link(self, secret: str, password: str, *, origin: str) -> str:
        """Choose a password by a link, and log in. Raises `Unauthenticated` when the link is no good."""
        key, now = _key("link", origin), self.parts.clock.now()
        async with self._database.transaction() as connection:
            await self._refuse_too_many(connection, {key: _FREE_BY_ADDRESS}, now)
            await self.repository.count_attempt(connection, key, now, _FORGOTTEN_AFTER)
        hashed = await self.hashing.hash(password)
        async with self._database.transaction() as connection:
            principal = await self.repository.use_link(connection, hash_of(secret), now)
            if principal is None:
                raise Unauthenticated("This link was used already, or has expired; ask an administrator for another.")
            person = await self.parts.person(connection, principal.name)
            check_password(password, person.login_name)  # raises: then the link stays good
            await self.repository.put_password(connection, person.id, hashed, now)
            await self.repository.take_back_attempt(connection, key)
            await self.repository.forgive(connection, _key("name", person.login_name.lower()))
            return await self.logins.start(connection, principal, how="link", origin=origin)

    async def log_out(self, caller: Caller, slug: str) -> int:
        """Log somebody out of every browser. For administrators of the platform."""
        authorize(caller, Action.ADMIN, PLATFORM)
        async with self._database.transaction() as connection:
            person = await self.parts.person(connection, slug)
            if person.is_owner and not caller.principal.is_owner:
                raise Forbidden("Only the owner ends the owner's logins.")
            ended = await self.logins.end_all(connection, person.id, by=caller.actor)
        self.logins.forget()
        return ended

    @property
    def _database(self) -> Database:
        return self.parts.database

    async def _refuse_too_many(self, connection: Connection, free: dict[bytes, int], now: datetime) -> None:
        found = await self.repository.failures(connection, list(free))
        for key, (failures, failed_at) in found.items():
            over = failures - free[key]
            if over < 0:
                continue
            wait = min(_LONGEST_WAIT, timedelta(seconds=2 ** min(over + 1, 20)))
            if now < failed_at + wait:
                seconds = int((failed_at + wait - now).total_seconds()) + 1
                raise TooManyAttempts(
                    f"Too many attempts failed; try again in {seconds} seconds.", retry_after_seconds=seconds
                )


def _key(kind: str, text: str) -> bytes:
    return hash_of(f"{kind}:{text}")


def _wrong() -> Unauthenticated:
    return Unauthenticated("The login name or the password is wrong.")
