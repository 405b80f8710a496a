"""Who has which role where: given, taken away, listed, explained."""

from collections.abc import Sequence
from dataclasses import dataclass

from contextbase.db.database import Connection
from contextbase.errors import Forbidden, InvalidInput, NotFound
from contextbase.identity.authorization import authorize, decide
from contextbase.identity.model import Action, Caller
from contextbase.identity.people.model import HeldRole, Person
from contextbase.identity.people.parts import PeopleParts
from contextbase.identity.roles import PLATFORM, RightDecision, RoleBinding, RoleScope
from contextbase.role_vocabulary import Right, Role, RoleScopeKind

__all__ = ["RoleService"]


@dataclass(frozen=True, kw_only=True, slots=True)
class RoleService:
    """Administrators of the platform give every role; those of an app or a project make others members of it."""

    parts: PeopleParts

    async def grant(self, caller: Caller, slug: str, role: Role, place: str) -> bool:
        """Give a person a role in a scope, such as `project:notes`; False when they had it."""
        async with self.parts.database.transaction() as connection:
            person, binding = await self._meant(connection, caller, slug, role, place)
            now = self.parts.clock.now()
            given = await self.parts.repository.bind(connection, person.id, binding, by=caller.principal.id, at=now)
            if given:
                summary = f"Made {slug} {role} in {place}."
                about = _details(person, binding)
                await self.parts.note(connection, caller, "role.grant", summary, **about)
        self.parts.identity.forget()
        return given

    async def revoke(self, caller: Caller, slug: str, role: Role, place: str) -> bool:
        """Take a role away; False when they did not have it. It takes effect within a second."""
        async with self.parts.database.transaction() as connection:
            person, binding = await self._meant(connection, caller, slug, role, place)
            taken = await self.parts.repository.unbind(connection, person.id, binding)
            if taken:
                summary = f"{slug} is not {role} in {place} any more."
                about = _details(person, binding)
                await self.parts.note(connection, caller, "role.revoke", summary, **about)
        self.parts.identity.forget()
        if taken:
            await self.parts.narrowing.narrowed()
        return taken

    async def list(
        self, caller: Caller, *, slug: str | None = None, place: str | None = None, offset: int = 0, limit: int = 100
    ) -> Sequence[HeldRole]:
        """Who has which role: of a person, in a scope, or of everybody. Everybody sees their own."""
        async with self.parts.database.connection() as connection:
            scope = None if place is None else await self._scope(connection, caller, place)
            if slug != caller.principal.name or caller.grant.rights is None:
                _authorize(caller, PLATFORM if scope is None else scope, place)
            return await self.parts.repository.bindings(connection, slug=slug, scope=scope, offset=offset, limit=limit)

    async def explain(self, caller: Caller, slug: str, action: Right | Action, place: str) -> RightDecision:
        """Whether a person may do something somewhere, by any token or login, and which role decides it."""
        async with self.parts.database.transaction() as connection:
            if slug != caller.principal.name or caller.grant.rights is None:
                authorize(caller, Action.ADMIN, PLATFORM)
            scope = await self._scope(connection, caller, place)
            person = await self.parts.person(connection, slug)
            accounts = await self.parts.principals.accounts(connection, {person.id})
        if person.is_owner:
            return RightDecision(allowed=True, reason="the owner may do everything")
        if person.is_disabled:
            return RightDecision(allowed=False, reason="the account is disabled")
        return accounts[person.id].rights.decide(action, scope)

    async def _meant(
        self, connection: Connection, caller: Caller, slug: str, role: Role, place: str
    ) -> tuple[Person, RoleBinding]:
        scope = await self._scope(connection, caller, place)
        binding = RoleBinding(role=role, scope=scope)
        is_local = role is Role.MEMBER and scope.kind in (RoleScopeKind.APP, RoleScopeKind.PROJECT)
        _authorize(caller, scope if is_local else PLATFORM, place)
        person = await self.parts.person(connection, slug)
        if person.is_owner:
            raise InvalidInput("The owner may do everything, always: roles are for others.")
        return person, binding

    async def _scope(self, connection: Connection, caller: Caller, place: str) -> RoleScope:
        """As it is stored: projects by their id, because a name may become another project's. Only administrators of
        the platform are told that something does not exist; others are refused there like anywhere else."""
        scope = RoleScope.parse(place)
        if not caller.administers_all:
            project_id = await self.parts.repository.project_id(connection, scope.id)
            is_project = scope.kind is RoleScopeKind.PROJECT and project_id is not None
            return RoleScope(scope.kind, str(project_id)) if is_project else scope
        if scope.kind is RoleScopeKind.PROJECT and "/" not in scope.id:
            project_id = await self.parts.repository.project_id(connection, scope.id)
            if project_id is None:
                raise NotFound(f"There is no project '{scope.id}'.")
            return RoleScope(scope.kind, str(project_id))
        if scope.kind is RoleScopeKind.USER and await self.parts.repository.find(connection, scope.id) is None:
            raise NotFound(f"There is no person {scope.id}.")
        is_department = scope.kind is RoleScopeKind.DEPARTMENT
        if is_department and not await self.parts.repository.department_exists(connection, scope.id):
            raise NotFound(f"There is no department {scope.id}.")
        return scope


def _authorize(caller: Caller, scope: RoleScope, place: str | None) -> None:
    if not decide(caller, Action.ADMIN, scope).allowed:
        raise Forbidden(f"You may not manage roles in {place or 'the platform'}; its administrators may.")


def _details(person: Person, binding: RoleBinding) -> dict[str, str]:
    return {"about": person.slug, "role": str(binding.role), "scope": str(binding.scope)}
