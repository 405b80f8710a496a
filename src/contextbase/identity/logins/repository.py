"""Passwords, browser logins and links in PostgreSQL. Every method works in the caller's transaction."""

from datetime import datetime, timedelta
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.identity.logins.model import BrowserLogin
from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId

__all__ = ["LoginRepository"]

_SQL: Final = load_queries("contextbase.identity.logins")
_LOGIN: Final = RowShape(BrowserLogin)


class LoginRepository:
    async def person(self, connection: Connection, login_name: str) -> tuple[Principal, str | None, bool] | None:
        """(principal, hash of the password, whether they may not log in)."""
        row = await connection.fetchrow(_SQL.person_to_log_in, login_name)
        return None if row is None else (Principal.of_row(row), row["hash"], row["is_barred"])

    async def password(self, connection: Connection, person: PrincipalId) -> str | None:
        found: str | None = await connection.fetchval(_SQL.password_of, person)
        return found

    async def put_password(self, connection: Connection, person: PrincipalId, hashed: str, at: datetime) -> None:
        await connection.execute(_SQL.put_password, person, hashed, at)

    async def replace_hash(self, connection: Connection, person: PrincipalId, old: str, new: str) -> None:
        await connection.execute(_SQL.replace_hash, person, old, new)

    async def delete_password(self, connection: Connection, person: PrincipalId) -> None:
        await connection.execute(_SQL.delete_password, person)

    async def delete_identities(self, connection: Connection, person: PrincipalId) -> None:
        """Who they are at login providers: they are linked again by an address that the provider has verified."""
        await connection.execute(_SQL.delete_identities_of, person)

    async def failures(self, connection: Connection, keys: list[bytes]) -> dict[bytes, tuple[int, datetime]]:
        """(how many in a row, when the last one); they stay so until the transaction ends."""
        await connection.execute(_SQL.lock_attempts, sorted(keys))
        rows = await connection.fetch(_SQL.failures_of, keys)
        return {row["key"]: (row["failures"], row["failed_at"]) for row in rows}

    async def count_attempt(self, connection: Connection, key: bytes, at: datetime, forgotten: timedelta) -> None:
        await connection.execute(_SQL.count_attempt, key, at, forgotten.total_seconds())

    async def forgive(self, connection: Connection, key: bytes) -> None:
        await connection.execute(_SQL.forgive, key)

    async def take_back_attempt(self, connection: Connection, key: bytes) -> None:
        await connection.execute(_SQL.take_back_attempt, key)

    async def prune(self, connection: Connection, *, failures_before: datetime, logins_before: datetime) -> None:
        await connection.execute(_SQL.prune_failures, failures_before)
        await connection.execute(_SQL.prune_logins, logins_before)

    async def insert_login(self, connection: Connection, login: BrowserLogin, secret_hash: bytes) -> None:
        await connection.execute(
            _SQL.insert_login,
            login.id,
            login.principal.id,
            login.token_id,
            secret_hash,
            login.rotated_at,
            login.expires_at,
        )

    async def login(self, connection: Connection, secret_hash: bytes) -> BrowserLogin | None:
        row = await connection.fetchrow(_SQL.login_by_secret, secret_hash)
        return None if row is None else _login(row)

    async def login_by_id(self, connection: Connection, login_id: UUID) -> BrowserLogin | None:
        row = await connection.fetchrow(_SQL.login_by_id, login_id)
        return None if row is None else _login(row)

    async def rotate(self, connection: Connection, login_id: UUID, old: bytes, new: bytes, at: datetime) -> bool:
        """Whether it was this call that replaced the secret."""
        return bool(await connection.fetchval(_SQL.rotate_login, login_id, old, new, at))

    async def end_login(self, connection: Connection, secret_hash: bytes, at: datetime) -> PrincipalId | None:
        found: PrincipalId | None = await connection.fetchval(_SQL.end_login, secret_hash, at)
        return found

    async def end_logins_of(
        self, connection: Connection, person: PrincipalId, at: datetime, *, but: UUID | None = None
    ) -> int:
        return len(await connection.fetch(_SQL.end_logins_of, person, at, but))

    async def put_link(
        self, connection: Connection, person: PrincipalId, secret_hash: bytes, *, by: PrincipalId, expires_at: datetime
    ) -> None:
        await connection.execute(_SQL.insert_link, secret_hash, person, by, expires_at)

    async def use_links_of(self, connection: Connection, person: PrincipalId, at: datetime) -> None:
        await connection.execute(_SQL.use_links_of, person, at)

    async def use_link(self, connection: Connection, secret_hash: bytes, at: datetime) -> Principal | None:
        """Whose it is; from now on it is no good."""
        row = await connection.fetchrow(_SQL.use_link, secret_hash, at)
        return None if row is None else Principal.of_row(row)


def _login(row: asyncpg.Record) -> BrowserLogin:
    return _LOGIN(row, principal=Principal.of_row(row))
