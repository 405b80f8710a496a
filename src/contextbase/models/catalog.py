"""What administrators decide about models: services, allowed models with prices, budgets. Each change is audited."""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta
from typing import Final
from urllib.parse import urlsplit

import asyncpg

from contextbase.agent_vocabulary import UsageGroup
from contextbase.audit.model import SYSTEM_CHAIN
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, Forbidden, InvalidInput, NotFound
from contextbase.identity.model import Action, Caller, PrincipalKind, PrincipalName
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import Clock, ProjectId, new_uuid
from contextbase.models.ledger import first_of_month
from contextbase.models.model import (
    AllowedModel,
    BudgetScope,
    BudgetUse,
    ModelProtocol,
    ModelUpstream,
    UpstreamScope,
    UsageSum,
)
from contextbase.models.repository import ModelRepository
from contextbase.models.sealing import KeySealer

__all__ = ["ModelCatalog", "NewUpstream"]

_NAME: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,99}")


@dataclass(frozen=True, kw_only=True, slots=True)
class NewUpstream:
    """A service that somebody adds; checked when it is built."""

    name: str
    protocol: ModelProtocol
    base_url: str
    key: str = field(default="", repr=False)
    scope: UpstreamScope = UpstreamScope.PLATFORM
    project_id: ProjectId | None = None

    def __post_init__(self) -> None:
        if not _NAME.fullmatch(self.name):
            raise InvalidInput("An upstream's name has 1 to 100 lower-case letters, digits or ._-")
        try:
            parts = urlsplit(self.base_url)
            is_url = parts.scheme in ("http", "https") and bool(parts.hostname) and not parts.username
            parts.port  # noqa: B018 - raises if it is none
        except ValueError:
            is_url = False
        if not is_url or parts.query or parts.fragment or len(self.base_url) > 2000:
            raise InvalidInput("An upstream's URL is such as https://api.example.com, without a user or a query.")
        if not self.key.isascii() or any(character.isspace() for character in self.key) or len(self.key) > 10_000:
            raise InvalidInput("A key is one line of ASCII characters without spaces.")
        if (self.scope is UpstreamScope.PROJECT) != (self.project_id is not None):
            raise InvalidInput("An upstream of a project, and no other, names the project.")


@dataclass(frozen=True, kw_only=True, slots=True)
class ModelCatalog:
    database: Database
    repository: ModelRepository
    identity: IdentityRepository
    sealer: KeySealer
    audit: AuditRepository
    clock: Clock
    models_changed: Callable[[], None]

    async def upstreams(self, caller: Caller) -> list[ModelUpstream]:
        """Those that the caller may manage."""
        caller.require(Action.READ, caller.grant.project_id)
        async with self.database.connection() as connection:
            return [each for each in await self.repository.upstreams(connection) if _may_manage(caller, each)]

    async def add_upstream(self, caller: Caller, new: NewUpstream) -> ModelUpstream:
        """Raises `Conflict` if the name, or the scope's place for that protocol, is taken."""
        is_administrator = caller.administers_all
        if new.scope is UpstreamScope.USER:
            caller.require(Action.WRITE)
            if caller.principal.kind is not PrincipalKind.USER:
                raise Forbidden("Only users have model services of their own.")
        else:
            caller.require(Action.ADMIN, new.project_id)
        upstream_id = new_uuid()
        upstream = ModelUpstream(
            id=upstream_id,
            name=new.name,
            protocol=new.protocol,
            base_url=new.base_url.rstrip("/"),
            scope=new.scope,
            project_id=new.project_id,
            principal_id=caller.principal.id if new.scope is UpstreamScope.USER else None,
            may_be_private=is_administrator and new.scope is not UpstreamScope.USER,
            sealed_key=self.sealer.seal(upstream_id, new.key) if new.key else None,
        )
        async with self.database.transaction() as connection:
            try:
                await self.repository.add_upstream(connection, upstream, caller.principal.id)
            except asyncpg.UniqueViolationError:
                raise Conflict(
                    f"There is an upstream named '{new.name}', or one for {new.protocol} in this scope. Remove "
                    "it first: `contextbase model disconnect`."
                ) from None
            await self._note(connection, caller, "model.connect", f"Added the model service '{new.name}'.")
        return upstream

    async def remove_upstream(self, caller: Caller, name: str) -> None:
        async with self.database.transaction() as connection:
            await self._manageable(connection, caller, name)
            await self.repository.delete_upstream(connection, name)
            await self._note(connection, caller, "model.disconnect", f"Removed the model service '{name}'.")

    async def upstream(self, caller: Caller, name: str) -> ModelUpstream:
        """Raises `NotFound` if there is none that the caller may manage."""
        async with self.database.connection() as connection:
            return await self._manageable(connection, caller, name)

    async def models(self, caller: Caller) -> list[AllowedModel]:
        caller.require(Action.READ, caller.grant.project_id)
        async with self.database.connection() as connection:
            return await self.repository.models(connection)

    async def allow_model(self, caller: Caller, model: AllowedModel) -> None:
        """Add it, or change what it is for and what it costs."""
        caller.require(Action.ADMIN)
        if not 1 <= len(model.name.encode()) <= 200 or not model.name.isprintable():
            raise InvalidInput("A model's name has 1 to 200 printable characters.")
        if model.prices is not None and not all(0 <= price < 2**40 for price in model.prices):
            raise InvalidInput("A price is 0 or more micro-units for a million tokens.")
        async with self.database.transaction() as connection:
            await self.repository.put_model(connection, model)
            await self._note(connection, caller, "model.allow", f"Allowed the model '{model.name}' as {model.role}.")
        self.models_changed()

    async def forbid_model(self, caller: Caller, name: str) -> None:
        caller.require(Action.ADMIN)
        async with self.database.transaction() as connection:
            if not await self.repository.delete_model(connection, name):
                raise NotFound(f"The model '{name[:200]}' is not in the list; `contextbase model list` shows it.")
            await self._note(connection, caller, "model.forbid", f"Removed the model '{name}' from the list.")
        self.models_changed()

    async def budgets(self, caller: Caller) -> list[BudgetUse]:
        caller.require(Action.ADMIN)
        async with self.database.connection() as connection:
            return await self.repository.budgets(connection, first_of_month(self.clock.now()))

    async def usage(
        self, caller: Caller, group: UsageGroup, *, since: date | None = None, until: date | None = None, limit: int
    ) -> list[UsageSum]:
        """What was used on those days, both counted; None: since the first of the month, until today (UTC)."""
        caller.require(Action.ADMIN)
        first = since or first_of_month(self.clock.now())
        after = (until or self.clock.now().date()) + timedelta(days=1)
        if first >= after:
            raise InvalidInput("The first day of a usage table is not after its last day.")
        start, end = (datetime.combine(day, time(), UTC) for day in (first, after))
        async with self.database.connection() as connection:
            return await self.repository.usage_sums(connection, group, start, end, limit)

    async def set_user_budget(self, caller: Caller, name: str, limit: int | None) -> None:
        """What a user may spend in a month, in micro-units; None: no limit."""
        parsed = PrincipalName.parse(name)
        caller.require(Action.ADMIN)
        async with self.database.transaction() as connection:
            kind = PrincipalKind.USER if parsed.kind is None else parsed.kind
            principal = await self.identity.find_principal(connection, kind, parsed.name)
            if principal is None:
                raise NotFound(f"There is no principal {kind}:{parsed.name}.")
            if limit is None:
                await self.repository.delete_budget(connection, BudgetScope.USER, principal.id)
            else:
                await self.repository.put_budget(connection, BudgetScope.USER, principal.id, limit)
            await self._note(connection, caller, "model.budget", f"Set the model budget of {kind}:{parsed.name}.")

    async def set_project_budget(self, caller: Caller, project_id: ProjectId, limit: int | None) -> None:
        caller.require(Action.ADMIN)
        async with self.database.transaction() as connection:
            if limit is None:
                await self.repository.delete_budget(connection, BudgetScope.PROJECT, project_id)
            else:
                await self.repository.put_budget(connection, BudgetScope.PROJECT, project_id, limit)
            await self._note(connection, caller, "model.budget", f"Set the model budget of the project {project_id}.")

    async def _manageable(self, connection: Connection, caller: Caller, name: str) -> ModelUpstream:
        for each in await self.repository.upstreams(connection):
            if each.name == name and _may_manage(caller, each):
                return each
        if Action.ADMIN not in caller.grant.ceiling:
            raise Forbidden(f"You may not manage an upstream '{name[:120]}'; administrators may.")
        raise NotFound(f"There is no upstream '{name[:120]}' that you may manage.")

    async def _note(self, connection: Connection, caller: Caller, action: str, summary: str) -> None:
        await self.audit.note(connection, SYSTEM_CHAIN, action, summary, at=self.clock.now(), by=caller.actor)


def _may_manage(caller: Caller, upstream: ModelUpstream) -> bool:
    if upstream.scope is UpstreamScope.USER and upstream.principal_id == caller.principal.id:
        return caller.grant.project_id is None and Action.WRITE in caller.grant.actions
    if upstream.project_id is not None and caller.administers(upstream.project_id):
        return True
    return caller.administers_all
