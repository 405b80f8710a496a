"""Who sees what of an app's tree: nobody anything, until a user's own folder is opened for them.

A user and the agents of its sessions are in one group, which has that folder in every project of the app. What is shown
to all users of the app (knowledge, templates) reaches them in their sessions.
"""

from dataclasses import dataclass
from typing import Final

from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.model import App
from contextbase.db.database import Connection
from contextbase.errors import Conflict
from contextbase.identity.levels import Level, PathRule, SubjectKind
from contextbase.identity.model import Principal, PrincipalKind
from contextbase.identity.policy_repository import PolicyRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import new_uuid

__all__ = ["AppTreeAccess"]

_AUTH: Final = "auth/**"


@dataclass(frozen=True, kw_only=True, slots=True)
class AppTreeAccess:
    repository: PolicyRepository
    identity: IdentityRepository

    async def close_to_all(self, connection: Connection, app: App) -> None:
        """Of a new app: but for its own principal. The owner of the server, as always, sees everything."""
        acting = await self.identity.ensure_principal(connection, PrincipalKind.SYSTEM, _name(app))
        await self.repository.lock(connection, app.project_id)
        await self.repository.put_default(connection, app.project_id, Level.HIDDEN)
        rule = PathRule(
            id=new_uuid(),
            subject_kind=SubjectKind.PRINCIPAL,
            subject_id=acting.id,
            subject_name=str(acting),
            pattern="**",
            level=Level.READ_WRITE,
        )
        await self.repository.put_rule(connection, app.project_id, rule)
        await self.repository.bump(connection, app.project_id)

    async def principal(self, connection: Connection, app: App) -> Principal | None:
        """Who acts for the app in its tree, on behalf of people."""
        return await self.identity.find_principal(connection, PrincipalKind.SYSTEM, _name(app))

    async def open_for(self, connection: Connection, app: App, place: AppPlace, user: Principal) -> None:
        """The user's own folder, in the place's project. Done again, it changes nothing."""
        group = f"app.{app.name}.{user.id}"
        group_id = await self.repository.group(connection, group)
        if group_id is None:
            await self.repository.create_group(connection, group)
            group_id = await self.repository.group(connection, group)
        if group_id is None:
            raise Conflict("Somebody removed the user's group at the same time; try again.")
        joined = await self.repository.add_member(connection, group_id, user.id)
        wanted = ((f"{place.user}/**", Level.READ_WRITE), (f"{place.user}/{_AUTH}", Level.HIDDEN))
        rules = await self.repository.rules(connection, app.project_id)
        has = {rule.pattern for rule in rules if rule.subject_id == group_id}
        missing = [(pattern, level) for pattern, level in wanted if pattern not in has]
        for pattern, level in missing:
            rule = PathRule(
                id=new_uuid(),
                subject_kind=SubjectKind.GROUP,
                subject_id=group_id,
                subject_name=group,
                pattern=pattern,
                level=level,
            )
            await self.repository.put_rule(connection, app.project_id, rule)
        if missing or joined:
            await self.repository.bump(connection, app.project_id)

    async def admit(self, connection: Connection, app: App, user: Principal, agent: Principal) -> None:
        """A new agent of the user's, of whom nobody remembers any rights yet."""
        group_id = await self.repository.group(connection, f"app.{app.name}.{user.id}")
        if group_id is None:
            raise Conflict(f"The folder of {user} in the app '{app.name}' is not open.")
        await self.repository.add_member(connection, group_id, agent.id)


def _name(app: App) -> str:
    return f"app.{app.name}"
