"""People and departments: made, changed, disabled. Their roles are in `bindings.py`."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from contextbase.db.database import Connection
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.identity.authorization import authorize
from contextbase.identity.model import Action, Caller, PrincipalKind
from contextbase.identity.people.model import Department, Person, PersonChange, PersonRequest
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.roles import PLATFORM, RoleBinding, check_slug
from contextbase.role_vocabulary import Role

__all__ = ["PeopleService"]

_LONGEST_TITLE: Final = 400


@dataclass(frozen=True, kw_only=True, slots=True)
class PeopleService:
    """Everything here is for administrators of the platform; a person may see their own account."""

    parts: PeopleParts

    async def create(self, caller: Caller, request: PersonRequest, *, as_member: bool = True) -> Person:
        """Make an account; raises `Conflict` when its slug, login name or e-mail address is taken. A principal that
        had tokens under that name is the person from now on. `as_member`: may use every app that is shown to them."""
        authorize(caller, Action.ADMIN, PLATFORM)
        async with self.parts.database.transaction() as connection:
            principal = await self.parts.principals.ensure_principal(connection, PrincipalKind.USER, request.slug)
            await self.parts.repository.insert(connection, principal.id, request)
            if as_member:
                binding = RoleBinding(role=Role.MEMBER, scope=PLATFORM)
                now = self.parts.clock.now()
                await self.parts.repository.bind(connection, principal.id, binding, by=caller.principal.id, at=now)
            await self.parts.note(
                connection, caller, "user.create", f"Made the account of {request.slug}.", about=request.slug
            )
            person = await self.parts.person(connection, request.slug)
        self.parts.identity.forget()
        return person

    async def get(self, caller: Caller, slug: str) -> Person:
        """Somebody's account; their own for those who do not administer people."""
        if slug != caller.principal.name or caller.grant.rights is None:
            authorize(caller, Action.ADMIN, PLATFORM)
        async with self.parts.database.transaction() as connection:
            return await self.parts.person(connection, slug)

    async def list(
        self, caller: Caller, *, after: str = "", limit: int = 100, department: str | None = None
    ) -> Sequence[Person]:
        """By slug, after a slug."""
        authorize(caller, Action.ADMIN, PLATFORM)
        async with self.parts.database.connection() as connection:
            return await self.parts.repository.page(connection, after=after, limit=limit, department=department)

    async def change(self, caller: Caller, slug: str, change: PersonChange) -> Person:
        """Change an account. Who is disabled is out within a second: tokens, logins, streams and what agents do for
        them. Raises `Forbidden` for disabling the owner."""
        authorize(caller, Action.ADMIN, PLATFORM)
        async with self.parts.database.transaction() as connection:
            before = await self.parts.person(connection, slug)
            if before.is_owner and not caller.principal.is_owner:
                raise Forbidden("Only the owner changes the owner's account.")
            if change.disabled and before.is_owner:
                raise Forbidden("The owner cannot be disabled.")
            after = replace(
                before,
                login_name=before.login_name if change.login_name is None else change.login_name,
                display_name=before.display_name if change.display_name is None else change.display_name,
                email=before.email if change.email is None else change.email or None,
                department=before.department if change.department is None else change.department or None,
                is_disabled=before.is_disabled if change.disabled is None else change.disabled,
            )
            await self.parts.repository.change(connection, after, self.parts.clock.now())
            await self._note_change(connection, caller, before, after)
        self.parts.identity.forget()
        if after.is_disabled and not before.is_disabled:
            await self.parts.narrowing.narrowed()
        return after

    async def departments(self, caller: Caller) -> Sequence[Department]:
        authorize(caller, Action.ADMIN, PLATFORM)
        async with self.parts.database.connection() as connection:
            return await self.parts.repository.departments(connection)

    async def create_department(self, caller: Caller, name: str, title: str = "") -> Department:
        authorize(caller, Action.ADMIN, PLATFORM)
        check_slug(name, "A department's name")
        _check_title(title)
        async with self.parts.database.transaction() as connection:
            if not await self.parts.repository.add_department(connection, name, title):
                raise Conflict(f"There is a department {name} already.")
            await self.parts.note(connection, caller, "department.create", f"Made the department {name}.", about=name)
        return Department(name=name, title=title, people=0)

    async def rename_department(self, caller: Caller, name: str, title: str) -> Department:
        """Give it another title; its name stays."""
        authorize(caller, Action.ADMIN, PLATFORM)
        _check_title(title)
        async with self.parts.database.transaction() as connection:
            if not await self.parts.repository.change_department(connection, name, title):
                raise _no_department(name)
            await self.parts.note(
                connection, caller, "department.change", f"Gave the department {name} a title.", about=name
            )
            found = await self.parts.repository.departments(connection)
        return next(each for each in found if each.name == name)

    async def delete_department(self, caller: Caller, name: str) -> None:
        """Remove an empty one, with the roles that people of other departments have in it."""
        authorize(caller, Action.ADMIN, PLATFORM)
        async with self.parts.database.transaction() as connection:
            if not await self.parts.repository.delete_department(connection, name):
                raise _no_department(name)
            await self.parts.note(
                connection, caller, "department.delete", f"Removed the department {name}.", about=name
            )
        self.parts.identity.forget()

    async def _note_change(self, connection: Connection, caller: Caller, before: Person, after: Person) -> None:
        names = ("login_name", "display_name", "email", "department")
        changed = [name for name in names if getattr(before, name) != getattr(after, name)]
        if changed:
            summary = f"Changed {', '.join(changed)} of {after.slug}."
            await self.parts.note(connection, caller, "user.change", summary, about=after.slug)
        if before.is_disabled != after.is_disabled:
            action, did = ("user.disable", "Disabled") if after.is_disabled else ("user.enable", "Enabled")
            await self.parts.note(connection, caller, action, f"{did} the account of {after.slug}.", about=after.slug)


def _check_title(title: str) -> None:
    if len(title.encode()) > _LONGEST_TITLE or not title.isprintable():
        raise InvalidInput(f"A department's title has at most {_LONGEST_TITLE} printable bytes.")


def _no_department(name: str) -> NotFound:
    return NotFound(f"There is no department {name[:120]}; `contextbase department list` shows them.")
