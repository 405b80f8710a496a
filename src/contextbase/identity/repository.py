"""Principals and tokens in PostgreSQL."""

from collections.abc import Collection, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Final

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, NotFound
from contextbase.identity.model import Action, PersonAccount, Principal, PrincipalKind, Token
from contextbase.identity.roles import Rights, RoleBinding, RoleScope
from contextbase.ids import PrincipalId, ProjectId, TokenId, TreePath, new_uuid
from contextbase.role_vocabulary import Role, RoleScopeKind

__all__ = ["IdentityRepository"]

_SQL: Final = load_queries("contextbase.identity")


class IdentityRepository:
    async def ensure_principal(
        self,
        connection: Connection,
        kind: PrincipalKind,
        name: str,
        *,
        is_owner: bool = False,
        made_by: PrincipalId | None = None,
    ) -> Principal:
        """The principal of that kind and name, made if it is new. `made_by`: the person who answers for it then."""
        found = await self.find_principal(connection, kind, name)
        if found is None:
            await connection.execute(_SQL.insert_principal, new_uuid(), str(kind), name, is_owner, made_by)
            found = await self.find_principal(connection, kind, name)
        if found is None:
            raise NotFound(f"The {kind} {name} was removed at the same time; try again.")
        return found

    async def adopt(
        self, connection: Connection, principal_id: PrincipalId, person: PrincipalId | None, project: ProjectId | None
    ) -> None:
        """Let a person (None: the owner) answer for a principal whose maker has left the project (None: may not work in
        all). Older tokens of it are revoked. Raises `Conflict` if it works for its maker in another project still."""
        if await connection.fetchval(_SQL.adopt_principal, principal_id, person, project):
            raise Conflict("An agent of this name works in another project for somebody else. Choose another name.")

    async def has_maker(self, connection: Connection, principal_id: PrincipalId) -> bool:
        """Whether a person answers for it."""
        return bool(await connection.fetchval(_SQL.has_maker, principal_id))

    async def find_principal(self, connection: Connection, kind: PrincipalKind, name: str) -> Principal | None:
        row = await connection.fetchrow(_SQL.principal_by_name, str(kind), name)
        return None if row is None else Principal.of_row(row, prefix="")

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
        people = {PrincipalId(row["principal_id"]) for row in rows if row["is_person"]}
        people |= {PrincipalId(row["made_by"]) for row in rows if row["made_by"] is not None}
        accounts = await self.accounts(connection, people) if people else {}
        return {row["secret_hash"]: _token_of(row, accounts) for row in rows}

    async def accounts(
        self, connection: Connection, principal_ids: Collection[PrincipalId]
    ) -> dict[PrincipalId, PersonAccount]:
        """Of those who are people: the owner and principals without an account are left out."""
        rows = await connection.fetch(_SQL.rights_of_people, list(principal_ids))
        return {PrincipalId(row["principal_id"]): _account(row) for row in rows}

    async def ensure_owner_account(self, connection: Connection, owner: PrincipalId) -> None:
        """The owner is listed among the people, as their first administrator."""
        await connection.execute(_SQL.ensure_owner_account, owner)

    async def is_person(self, connection: Connection, principal_id: PrincipalId) -> bool:
        return bool(await connection.fetchval(_SQL.is_person, principal_id))

    async def tokens(
        self,
        connection: Connection,
        *,
        project_id: ProjectId | None,
        of_person: Rights | None,
        with_owner: bool,
        before: TokenId | None,
        limit: int,
    ) -> list[Token]:
        """Newest first: those limited to a project, or (None) all; of those, `of_person` gives a person's own and those
        of the projects they administer; without the owner's, unless `with_owner`."""
        person, projects = None, []
        if of_person is not None:
            person = of_person.person
            projects = [each for each, actions in of_person.projects.items() if Action.ADMIN in actions]
        rows = await connection.fetch(_SQL.token_page, before, limit, project_id, with_owner, person, projects)
        return [_token(row) for row in rows]

    async def token(self, connection: Connection, token_id: TokenId) -> Token | None:
        row = await connection.fetchrow(_SQL.token_by_id, token_id)
        return None if row is None else _token(row)

    async def token_with_account(self, connection: Connection, token_id: TokenId) -> Token | None:
        row = await connection.fetchrow(_SQL.token_by_id, token_id)
        if row is None:
            return None
        people = {PrincipalId(each) for each in (row["principal_id"], row["made_by"]) if each is not None}
        return _token_of(row, await self.accounts(connection, people))

    async def revoke(self, connection: Connection, token_id: TokenId, at: datetime) -> bool:
        """Whether it was this call that revoked it."""
        return bool(await connection.fetchval(_SQL.revoke_token, token_id, at))

    async def project_exists(self, connection: Connection, project_id: ProjectId) -> bool:
        return bool(await connection.fetchval(_SQL.project_exists, project_id))


def _account(row: asyncpg.Record) -> PersonAccount:
    bindings = (
        RoleBinding(role=Role(role), scope=RoleScope(RoleScopeKind(kind), scope_id))
        for role, kind, scope_id in row["bindings"]
    )
    rights = Rights(
        person=PrincipalId(row["principal_id"]), slug=row["slug"], bindings=bindings, department=row["department"]
    )
    return PersonAccount(rights=rights, is_disabled=row["is_disabled"])


def _token_of(row: asyncpg.Record, accounts: Mapping[PrincipalId, PersonAccount]) -> Token:
    """With the accounts that it depends on: of the person whose it is, or of the one who made the agent."""
    return replace(_token(row, accounts.get(row["principal_id"])), maker=accounts.get(row["made_by"]))


def _token(row: asyncpg.Record, account: PersonAccount | None = None) -> Token:
    return Token(
        id=TokenId(row["id"]),
        principal=Principal.of_row(row),
        name=row["name"],
        actions=frozenset(map(Action, row["actions"])),
        project_id=None if row["project_id"] is None else ProjectId(row["project_id"]),
        path_prefix=None if row["path_prefix"] is None else TreePath(row["path_prefix"]),
        created_at=row["created_at"],
        expires_at=row["expires_at"],
        revoked_at=row["revoked_at"],
        account=account,
    )
