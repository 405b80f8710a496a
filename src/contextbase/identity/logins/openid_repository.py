"""Logins by a provider that are under way, and who is who there. Every method works in the caller's transaction."""

from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict
from contextbase.identity.logins.id_tokens import IdTokenClaims
from contextbase.identity.logins.model import LinkedIdentity
from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId

__all__ = ["OpenIdAttempt", "OpenIdRepository"]

_SQL: Final = load_queries("contextbase.identity.logins")
_MOST_ATTEMPTS: Final = 10_000


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenIdAttempt:
    """A browser that was sent to the provider."""

    nonce: str = field(repr=False)
    verifier: str = field(repr=False)
    redirect_uri: str
    return_to: str


class OpenIdRepository:
    async def put(
        self, connection: Connection, state: bytes, browser: bytes, attempt: OpenIdAttempt, expires_at: datetime
    ) -> bool:
        """False: too many are under way."""
        is_put = await connection.fetchval(
            _SQL.insert_openid_attempt,
            state,
            browser,
            attempt.nonce,
            attempt.verifier,
            attempt.redirect_uri,
            attempt.return_to,
            expires_at,
            _MOST_ATTEMPTS,
        )
        return bool(is_put)

    async def prune(self, connection: Connection, now: datetime) -> None:
        """Those that took too long."""
        await connection.execute(_SQL.prune_openid_attempts, now)

    async def take(self, connection: Connection, state: bytes, browser: bytes, now: datetime) -> OpenIdAttempt | None:
        """Once; None as well for another browser's."""
        row = await connection.fetchrow(_SQL.take_openid_attempt, state, browser, now)
        return None if row is None else OpenIdAttempt(**row)

    async def person(self, connection: Connection, claims: IdTokenClaims) -> tuple[Principal, bool] | None:
        """(who it is, whether they may not log in)."""
        row = await connection.fetchrow(_SQL.person_by_identity, claims.issuer, claims.subject)
        return None if row is None else (Principal.of_row(row), row["is_barred"])

    async def person_to_link(self, connection: Connection, issuer: str, email: str) -> Principal | None:
        row = await connection.fetchrow(_SQL.person_to_link, issuer, email)
        return None if row is None else Principal.of_row(row)

    async def link(self, connection: Connection, claims: IdTokenClaims, person: PrincipalId, at: datetime) -> None:
        """Raises `Conflict` when the same person logs in for the first time elsewhere at this very moment."""
        try:
            await connection.execute(_SQL.insert_identity, claims.issuer, claims.subject, person, at)
        except asyncpg.UniqueViolationError:
            raise Conflict("You are just being logged in somewhere else, too. Try again.") from None

    async def identities(self, connection: Connection, person: PrincipalId) -> list[LinkedIdentity]:
        """Who they are, at which providers."""
        return [LinkedIdentity(**row) for row in await connection.fetch(_SQL.identities_of, person)]

    async def unlink(self, connection: Connection, person: PrincipalId, issuer: str) -> None:
        await connection.execute(_SQL.delete_identity, person, issuer)

    async def name_is_taken(self, connection: Connection, name: str) -> bool:
        return bool(await connection.fetchval(_SQL.name_is_taken, name, name))

    async def email_is_taken(self, connection: Connection, email: str) -> bool:
        return bool(await connection.fetchval(_SQL.email_is_taken, email))
