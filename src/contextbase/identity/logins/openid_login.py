"""Logging in by a provider: the browser is sent there with a state, and comes back with a code for an ID token.

Who somebody is here is decided by (issuer, subject). An e-mail address counts once, for an account without such a link,
and only if the provider says that it checked the address."""

import base64
import hashlib
import re
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Final
from urllib.parse import urlencode

from contextbase.audit.model import SYSTEM_CHAIN, Actor, WayIn
from contextbase.db.database import Connection
from contextbase.errors import Forbidden, InvalidInput, TooBusy, Unauthenticated
from contextbase.identity.logins.browser import BrowserLogins
from contextbase.identity.logins.id_tokens import IdTokenClaims, checked_claims, key_id_of
from contextbase.identity.logins.model import hash_of, new_secret
from contextbase.identity.logins.openid_provider import OpenIdProvider
from contextbase.identity.logins.openid_repository import OpenIdAttempt, OpenIdRepository
from contextbase.identity.model import GrantSource, Principal, PrincipalKind
from contextbase.identity.people.model import PersonRequest
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.roles import PLATFORM, RoleBinding
from contextbase.role_vocabulary import Role

__all__ = ["ATTEMPT_LIFE", "OpenIdLogins", "SentOff"]

ATTEMPT_LIFE: Final = timedelta(minutes=10)
_MOST_NAMES: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class SentOff:
    """Where a browser has to go, and the secret that it comes back with, in a cookie."""

    address: str
    browser_secret: str


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenIdLogins:
    parts: PeopleParts
    logins: BrowserLogins
    provider: OpenIdProvider
    repository: OpenIdRepository = field(default_factory=OpenIdRepository)

    async def begin(self, redirect_uri: str, return_to: str) -> SentOff:
        """Raises `Unavailable` when the provider does not answer."""
        document, client = await self.provider.document(), self.provider.client
        state, browser, nonce, verifier = (new_secret() for _ in range(4))
        attempt = OpenIdAttempt(
            nonce=nonce, verifier=verifier, redirect_uri=redirect_uri, return_to=checked_return(return_to)
        )
        now = self.parts.clock.now()
        async with self.parts.database.transaction() as connection:
            await self.repository.prune(connection, now)
            if not await self.repository.put(connection, hash_of(state), hash_of(browser), attempt, now + ATTEMPT_LIFE):
                raise TooBusy("Too many people log in at the same time; try again in a few minutes.")
        challenge = base64.urlsafe_b64encode(hashlib.sha256(verifier.encode()).digest()).rstrip(b"=").decode()
        query = {
            "response_type": "code",
            "client_id": client.client_id,
            "redirect_uri": redirect_uri,
            "scope": client.scopes,
            "state": state,
            "nonce": nonce,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
        }
        mark = "&" if "?" in document.authorization_endpoint else "?"
        return SentOff(address=f"{document.authorization_endpoint}{mark}{urlencode(query)}", browser_secret=browser)

    async def finish(self, *, state: str, browser_secret: str, code: str, issuer: str, origin: str) -> tuple[str, str]:
        """(the secret of a new browser login, the page that was asked for). Raises `Unauthenticated` for everything
        that is not as it was agreed, and `Forbidden` for somebody who is known to the provider alone."""
        now = self.parts.clock.now()
        async with self.parts.database.transaction() as connection:
            attempt = await self.repository.take(connection, hash_of(state), hash_of(browser_secret), now)
        if attempt is None:
            raise Unauthenticated("This login was not begun in this browser, or took too long. Start again.")
        if not code:
            raise Unauthenticated("The login provider did not let you in. Start again from the login page.")
        document = await self.provider.document()
        if issuer and issuer != document.issuer:
            raise Unauthenticated("The answer came from another login provider. Start again from the login page.")
        token = await self.provider.id_token(code, verifier=attempt.verifier, redirect_uri=attempt.redirect_uri)
        claims = checked_claims(
            token,
            await self.provider.keys(key_id_of(token)),
            issuer=document.issuer,
            client_id=self.provider.client.client_id,
            nonce=attempt.nonce,
            now=now,
        )
        async with self.parts.database.transaction() as connection:
            principal = await self._person(connection, claims, origin)
            secret = await self.logins.start(connection, principal, how="login provider", origin=origin)
        self.parts.identity.forget()
        return secret, attempt.return_to

    async def _person(self, connection: Connection, claims: IdTokenClaims, origin: str) -> Principal:
        found = await self.repository.person(connection, claims)
        if found is not None:
            principal, is_barred = found
            if is_barred:
                raise Forbidden("This account is disabled. Ask an administrator.")
            return principal
        known = None
        if claims.verified_email is not None:
            known = await self.repository.person_to_link(connection, claims.issuer, claims.verified_email)
        if known is None:
            if not self.provider.client.creates_people:
                raise Forbidden(
                    "You are known to the login provider, but have no account here. Ask an administrator for one with "
                    "your e-mail address."
                )
            known = await self._create(connection, claims)
        now = self.parts.clock.now()
        await self.repository.link(connection, claims, known.id, now)
        by = Actor(way_in=WayIn.WEB_UI, principal_id=known.id, grant=GrantSource.LOGIN, origin=origin)
        summary = f"{known.name} is {claims.subject[:100]} at {claims.issuer}."
        await self.parts.audit.note(
            connection, SYSTEM_CHAIN, "login.link", summary, at=now, by=by, issuer=claims.issuer, subject=claims.subject
        )
        return known

    async def _create(self, connection: Connection, claims: IdTokenClaims) -> Principal:
        """Under a name that nobody has: whoever chooses names at the provider never becomes somebody who is here."""
        email = claims.verified_email
        if email is not None and await self.repository.email_is_taken(connection, email):
            email = None
        wanted = claims.preferred_name or (claims.verified_email or "").partition("@")[0] or "person"
        base = re.sub(r"[^a-z0-9._-]", "-", wanted.lower()).lstrip("._-")[:90] or "person"
        names = (base, *(f"{base}-{number}" for number in range(2, _MOST_NAMES)), f"{base[:50]}-{new_secret()[:8]}")
        for name in names:
            if not await self.repository.name_is_taken(connection, name):
                break
        display = claims.display_name[:100]
        request = PersonRequest(
            login_name=name, display_name=display if display.isprintable() else "", email=email, slug=name.lower()
        )
        principal = await self.parts.principals.ensure_principal(connection, PrincipalKind.USER, request.slug)
        await self.parts.repository.insert(connection, principal.id, request)
        now, binding = self.parts.clock.now(), RoleBinding(role=Role.MEMBER, scope=PLATFORM)
        await self.parts.repository.bind(connection, principal.id, binding, by=principal.id, at=now)
        by = Actor(way_in=WayIn.WEB_UI, principal_id=principal.id, grant=GrantSource.LOGIN)
        summary = f"Made the account of {request.slug}, at the first login by the provider."
        await self.parts.audit.note(connection, SYSTEM_CHAIN, "user.create", summary, at=now, by=by, about=request.slug)
        return principal


def checked_return(page: str) -> str:
    """A page of this server; never an address elsewhere."""
    if not re.fullmatch(r"/(?![/\\])[^\\\x00-\x20]{0,1000}", page):
        raise InvalidInput("The page to return to starts with one '/'.")
    return page
