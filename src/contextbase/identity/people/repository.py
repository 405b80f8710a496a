"""People, departments and role bindings in PostgreSQL. Every method works in the caller's transaction."""

from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.errors import Conflict, InvalidInput
from contextbase.identity.people.model import Department, HeldRole, Person, PersonRequest
from contextbase.identity.roles import RoleBinding, RoleScope
from contextbase.ids import PrincipalId
from contextbase.role_vocabulary import Role, RoleScopeKind

__all__ = ["PeopleRepository"]

_SQL: Final = load_queries("contextbase.identity.people")
_PERSON: Final = RowShape(Person)


class PeopleRepository:
    async def insert(self, connection: Connection, principal_id: PrincipalId, request: PersonRequest) -> None:
        """Raises `Conflict` when the slug, the login name or the e-mail address is somebody's."""
        try:
            await connection.execute(
                _SQL.insert_person,
                principal_id,
                request.login_name,
                request.display_name,
                request.email,
                request.department,
                request.is_service,
            )
        except asyncpg.UniqueViolationError as error:
            raise _taken(error) from None
        except asyncpg.ForeignKeyViolationError:
            raise _no_department(request.department) from None

    async def find(self, connection: Connection, slug: str) -> Person | None:
        row = await connection.fetchrow(_SQL.person, slug)
        return None if row is None else _person(row)

    async def page(self, connection: Connection, *, after: str, limit: int, department: str | None) -> list[Person]:
        return [_person(row) for row in await connection.fetch(_SQL.people_page, after, limit, department)]

    async def change(self, connection: Connection, person: Person, at: datetime) -> None:
        """Store all that may change of an account."""
        try:
            await connection.execute(
                _SQL.change_person,
                person.id,
                person.login_name,
                person.display_name,
                person.email,
                person.department,
                person.is_disabled,
                at,
            )
        except asyncpg.UniqueViolationError as error:
            raise _taken(error) from None
        except asyncpg.ForeignKeyViolationError:
            raise _no_department(person.department) from None

    async def departments(self, connection: Connection) -> list[Department]:
        return [
            Department(name=row["name"], title=row["title"], people=row["people"])
            for row in await connection.fetch(_SQL.departments)
        ]

    async def add_department(self, connection: Connection, name: str, title: str) -> bool:
        return bool(await connection.fetchval(_SQL.insert_department, name, title))

    async def change_department(self, connection: Connection, name: str, title: str) -> bool:
        return bool(await connection.fetchval(_SQL.change_department, name, title))

    async def delete_department(self, connection: Connection, name: str) -> bool:
        """Raises `Conflict` while people are in it."""
        try:
            found = await connection.fetchval(_SQL.delete_department, name)
        except asyncpg.ForeignKeyViolationError:
            raise Conflict(f"There are people in the department {name}; move them to another one first.") from None
        await connection.execute(_SQL.delete_department_bindings, name)
        return bool(found)

    async def department_exists(self, connection: Connection, name: str) -> bool:
        return bool(await connection.fetchval(_SQL.department_exists, name))

    async def project_id(self, connection: Connection, name_or_id: str) -> UUID | None:
        found: UUID | None = await connection.fetchval(_SQL.project_id_by_name, name_or_id)
        return found

    async def bind(
        self, connection: Connection, person: PrincipalId, binding: RoleBinding, *, by: PrincipalId, at: datetime
    ) -> bool:
        """Whether the person did not have the role there already."""
        scope = binding.scope
        return bool(await connection.fetchval(_SQL.insert_binding, person, binding.role, scope.kind, scope.id, by, at))

    async def unbind(self, connection: Connection, person: PrincipalId, binding: RoleBinding) -> bool:
        """Whether the person had the role there."""
        scope = binding.scope
        return bool(await connection.fetchval(_SQL.delete_binding, person, binding.role, scope.kind, scope.id))

    async def bindings(
        self, connection: Connection, *, slug: str | None, scope: RoleScope | None, offset: int, limit: int
    ) -> list[HeldRole]:
        kind, scope_id = (None, None) if scope is None else (scope.kind, scope.id)
        return [_held(row) for row in await connection.fetch(_SQL.bindings, slug, kind, scope_id, limit, offset)]


def _person(row: asyncpg.Record) -> Person:
    return _PERSON(row, id=PrincipalId(row["principal_id"]))


def _held(row: asyncpg.Record) -> HeldRole:
    scope = RoleScope(RoleScopeKind(row["scope_kind"]), row["scope_id"])
    return HeldRole(
        person=row["slug"],
        binding=RoleBinding(role=Role(row["role"]), scope=scope),
        place=str(RoleScope(scope.kind, row["place"])),
        granted_by=row["granted_by"],
        granted_at=row["granted_at"],
    )


def _taken(error: asyncpg.UniqueViolationError) -> Conflict:
    what = {"users_login_name": "login name", "users_email": "e-mail address"}.get(error.constraint_name or "", "slug")
    return Conflict(f"Somebody has this {what} already; choose another.")


def _no_department(name: str | None) -> InvalidInput:
    return InvalidInput(f"There is no department {name}; make it first: contextbase department create {name}.")
