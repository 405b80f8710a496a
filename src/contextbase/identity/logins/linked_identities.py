"""Who somebody is at login providers: listed, and unlinked one by one."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextbase.db.database import Connection
from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.identity.authorization import authorize
from contextbase.identity.logins.browser import BrowserLogins
from contextbase.identity.logins.model import LinkedIdentity
from contextbase.identity.logins.openid_repository import OpenIdRepository
from contextbase.identity.logins.repository import LoginRepository
from contextbase.identity.model import Action, Caller
from contextbase.identity.people.model import Person
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.roles import PLATFORM

__all__ = ["LinkedIdentities"]


@dataclass(frozen=True, kw_only=True, slots=True)
class LinkedIdentities:
    """For the person, and for administrators of the platform."""

    parts: PeopleParts
    repository: OpenIdRepository
    passwords: LoginRepository
    logins: BrowserLogins

    async def list(self, caller: Caller, slug: str) -> Sequence[LinkedIdentity]:
        async with self.parts.database.transaction() as connection:
            person = await self._person(connection, caller, slug)
            return await self.repository.identities(connection, person.id)

    async def unlink(self, caller: Caller, slug: str, issuer: str) -> int:
        """Forget who somebody is at one provider, and log them out of every browser; returns of how many. Raises
        `Conflict` if nothing would be left to log in by."""
        async with self.parts.database.transaction() as connection:
            person = await self._person(connection, caller, slug, changes=True)
            found = await self.repository.identities(connection, person.id)
            if issuer not in {each.issuer for each in found}:
                raise NotFound(f"{slug} is not linked to the login provider {issuer[:200]}.")
            if len(found) == 1 and await self.passwords.password(connection, person.id) is None:
                raise Conflict(
                    f"This is the only way in that {slug} has. Let {slug} choose a password first: "
                    f"contextbase user invite {slug}"
                )
            await self.repository.unlink(connection, person.id, issuer)
            ended = await self.logins.end_all(connection, person.id, by=caller.actor)
            summary = f"Unlinked {slug} from the login provider {issuer}."
            await self.parts.note(connection, caller, "login.unlink", summary, about=slug, issuer=issuer)
        self.logins.forget()
        return ended

    async def _person(self, connection: Connection, caller: Caller, slug: str, *, changes: bool = False) -> Person:
        grant = caller.grant
        if slug != caller.principal.name or grant.rights is None:
            authorize(caller, Action.ADMIN, PLATFORM)
        elif changes and (Action.WRITE not in grant.ceiling or grant.project_id is not None):
            raise Forbidden(f"This {grant.source} is for less than your account: log in, or use a token for all of it.")
        person = await self.parts.person(connection, slug)
        if person.is_owner and not caller.principal.is_owner:
            raise Forbidden("Only the owner sees and changes how the owner logs in.")
        return person
