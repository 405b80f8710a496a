"""Principals and tokens in PostgreSQL."""

from collections.abc import Collection
from datetime import datetime
from typing import Final

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import NotFound
from contextbase.identity.model import Action, Principal, PrincipalKind, Token
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath, new_uuid

__all__ = ["IdentityRepository"]

_SQL: Final = load_queries("contextbase.identity")


class IdentityRepository:
    async def ensure_principal(
        self, connection: Connection, kind: PrincipalKind, name: str, *, is_owner: bool = False
    ) -> Principal:
        """The principal of that kind and name, made if it is new."""
        found = await self.find_principal(connection, kind, name)
        if found is None:
            await connection.execute(_SQL.insert_principal, new_uuid(), str(kind), name, is_owner)
            found = await self.find_principal(connection, kind, name)
        if found is None:
            raise NotFound(f"The {kind} {name} was removed at the same time; try again.")
        return found

    async def find_principal(self, connection: Connection, kind: PrincipalKind, name: str) -> Principal | None:
        row = await connection.fetchrow(_SQL.principal_by_name, str(kind), name)
        if row is None:
            return None
        return Principal(
            id=PrincipalId(row["id"]), kind=PrincipalKind(row["kind"]), name=row["name"], is_owner=row["is_owner"]
        )

    async def insert_token(self, connection: Connection, token: Token, secret_hash: bytes) -> None:
        await connection.execute(
            _SQL.insert_token,
            token.id,
            token.principal.id,
            token.name,
            secret_hash,
            sorted(token.actions),
            token.project_id,
            token.path_prefix,
            token.created_at,
            token.expires_at,
        )

    async def tokens_by_secret(self, connection: Connection, hashes: Collection[bytes]) -> dict[bytes, Token]:
        rows = await connection.fetch(_SQL.tokens_by_secret, list(hashes))
        return {row["secret_hash"]: _token(row) for row in rows}

    async def tokens(
        self,
        connection: Connection,
        *,
        project_id: ProjectId | None,
        with_owner: bool,
        before: TokenId | None,
        limit: int,
    ) -> list[Token]:
        """Newest first: those limited to a project, or (None) all; without the owner's, unless `with_owner`."""
        rows = await connection.fetch(_SQL.token_page, before, limit, project_id, with_owner)
        return [_token(row) for row in rows]

    async def token(self, connection: Connection, token_id: TokenId) -> Token | None:
        row = await connection.fetchrow(_SQL.token_by_id, token_id)
        return None if row is None else _token(row)

    async def revoke(self, connection: Connection, token_id: TokenId, at: datetime) -> bool:
        """Whether it was this call that revoked it."""
        return bool(await connection.fetchval(_SQL.revoke_token, token_id, at))

    async def project_exists(self, connection: Connection, project_id: ProjectId) -> bool:
        return bool(await connection.fetchval(_SQL.project_exists, project_id))


def _token(row: asyncpg.Record) -> Token:
    principal = Principal(
        id=PrincipalId(row["principal_id"]),
        kind=PrincipalKind(row["principal_kind"]),
        name=row["principal_name"],
        is_owner=row["is_owner"],
    )
    return Token(
        id=TokenId(row["id"]),
        principal=principal,
        name=row["name"],
        actions=frozenset(map(Action, row["actions"])),
        project_id=None if row["project_id"] is None else ProjectId(row["project_id"]),
        path_prefix=None if row["path_prefix"] is None else TreePath(row["path_prefix"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
    )
