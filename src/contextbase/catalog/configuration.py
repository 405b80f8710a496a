"""Layered configuration of agents, and the secrets it names: versioned, audited, put together for a user at work."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Final

from pydantic import ValidationError

from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.effective_config import EffectiveConfig, effective_config, secrets_of
from contextbase.catalog.model import App, AppLayer, ConfigScope, StoredConfig
from contextbase.catalog.repository import AppRepository
from contextbase.catalog.service import AppService
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, InvalidInput, NotFound
from contextbase.identity.model import Caller
from contextbase.ids import Clock, PrincipalId, new_uuid
from contextbase.models.remote_mcp import RemoteMcpServer
from contextbase.models.sealing import KeySealer
from contextbase.role_vocabulary import Right
from contextbase.wire.agent_config import AgentConfig, ConfigLayer, SecretReference

__all__ = ["AgentConfiguration", "EffectiveLayers", "LocalMcpServer", "OpenedConfig", "parsed_config"]

_RIGHT: Final = Right.MANAGE_AGENTCONFIG
_PERSONAL: Final = frozenset({ConfigLayer.USER, ConfigLayer.RUN})  # what people say for themselves


@dataclass(frozen=True, kw_only=True, slots=True)
class LocalMcpServer:
    """A program that the agent's own starts, in the same sandbox."""

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(repr=False)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedConfig:
    """A configuration with its secrets; never shown."""

    config: AgentConfig
    environment: Mapping[str, str] = field(repr=False)
    local: Mapping[str, LocalMcpServer]
    remote: Mapping[str, RemoteMcpServer]


@dataclass(frozen=True, kw_only=True, slots=True)
class EffectiveLayers:
    effective: EffectiveConfig
    versions: Mapping[ConfigLayer, int]


def parsed_config(document: Mapping[str, Any]) -> AgentConfig:
    """Raises `InvalidInput` that names the first thing that is wrong."""
    try:
        return AgentConfig.model_validate(document)
    except ValidationError as error:
        [first, *_] = error.errors(include_url=False, include_input=False)
        place = ".".join(map(str, first["loc"]))
        raise InvalidInput(f"The configuration is wrong at {place}: {first['msg']}.") from None


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentConfiguration:
    database: Database
    repository: AppRepository
    apps: AppService
    sealer: KeySealer
    clock: Clock

    async def history(self, caller: Caller, layer: AppLayer, *, limit: int = 1) -> Sequence[StoredConfig]:
        """Newest first; a layer that nobody has set is an empty version 0."""
        async with self.database.connection() as connection:
            app, scope = await self._scope(connection, caller, layer)
            found = await self.repository.config_history(connection, app.id, scope, limit=limit)
        return found or [StoredConfig(scope=scope, version=0, config=AgentConfig.model_validate({}))]

    async def put(
        self, caller: Caller, layer: AppLayer, config: AgentConfig, *, expected: int | None = None
    ) -> StoredConfig:
        """A new version of a layer, in the place of the last. Raises `Conflict` if that is not the `expected` one."""
        async with self.database.transaction() as connection:
            app, scope = await self._scope(connection, caller, layer)
            stored = await self.repository.insert_config(connection, app.id, scope, config, caller.principal)
            if expected is not None and stored.version != expected + 1:
                raise Conflict(
                    f"The configuration is at version {stored.version - 1}, and not {expected}: somebody changed it. "
                    "Read it again."
                )
            summary = f"Changed the {layer.kind} layer of agent configuration to version {stored.version}."
            fields = sorted(name for name in config.model_fields_set if getattr(config, name) is not None)
            await self.apps.note(
                connection, caller, app, "app.config", summary, scope=scope, version=stored.version, set=fields
            )
        return stored

    async def effective(
        self, caller: Caller, name: str, project: str | None, overrides: AgentConfig | None = None
    ) -> tuple[AppPlace, EffectiveLayers]:
        """What holds for the caller at work in a project of the app."""
        async with self.database.connection() as connection:
            app, place = await self.apps.entry_at(connection, caller, name, project)
            return place, await self.of_user(connection, app, place, caller.principal.id, overrides)

    async def of_user(
        self,
        connection: Connection,
        app: App,
        place: AppPlace,
        user: PrincipalId,
        overrides: AgentConfig | None = None,
    ) -> EffectiveLayers:
        layers = await self.repository.config_layers(connection, app.id, place.project, user)
        stacked = [(layer, layers[layer][1]) for layer in ConfigLayer if layer in layers]
        if overrides is not None:
            stacked.append((ConfigLayer.RUN, overrides))
        versions = {layer: version for layer, (version, _) in layers.items()}
        return EffectiveLayers(effective=effective_config(stacked), versions=versions)

    async def opened(
        self, connection: Connection, app: App, place: AppPlace, user: PrincipalId, found: EffectiveConfig
    ) -> OpenedConfig:
        """With its secrets opened, for a run. Raises `Conflict` if one is not stored, or is not theirs who name it."""
        names = secrets_of(found.config)
        sealed = await self.repository.secrets_for(connection, app.id, place.project, user, names)

        def value(given: str | SecretReference, *, own: bool = False) -> str:
            if not isinstance(given, SecretReference):
                return given
            secret = sealed.get(given.secret)
            if secret is None:
                raise Conflict(f"The configuration names the secret '{given.secret}', which is not stored.")
            if own and secret.layer is not ConfigLayer.USER:
                raise Conflict(
                    f"The secret '{given.secret}' is not yours, so an MCP server that you name cannot have it. Store "
                    "one of your own: contextbase agent-config seal."
                )
            return self.sealer.open(secret.id, secret.sealed)

        local, remote = {}, {}
        for name, server in (found.config.mcp_servers or {}).items():
            if server is None:
                continue
            is_own = found.provenance.get(f"mcp_servers.{name}") in _PERSONAL
            if server.url is not None:
                headers = {header: value(given, own=is_own) for header, given in server.headers.items()}
                remote[name] = RemoteMcpServer(name=name, url=server.url, headers=headers, needs_egress=is_own)
            else:
                variables = {variable: value(given) for variable, given in server.environment.items()}
                local[name] = LocalMcpServer(name=name, command=tuple(server.command or ()), environment=variables)
        named = found.config.environment or {}
        environment = {name: value(given) for name, given in named.items() if given is not None}
        return OpenedConfig(config=found.config, environment=environment, local=local, remote=remote)

    async def stored_secrets(
        self, caller: Caller, name: str, project: str | None, config: AgentConfig
    ) -> dict[str, bool]:
        """Which of the secrets that a configuration names are stored for the caller."""
        names = secrets_of(config)
        if not names:
            return {}
        async with self.database.connection() as connection:
            app, place = await self.apps.entry_at(connection, caller, name, project)
            found = await self.repository.secrets_for(connection, app.id, place.project, caller.principal.id, names)
        return {each: each in found for each in sorted(names)}

    async def put_secret(self, caller: Caller, layer: AppLayer, secret: str, value: str) -> tuple[str, datetime]:
        """Seal it. Returns the key that it stands for, and when that was."""
        row_id = new_uuid()
        async with self.database.transaction() as connection:
            app, scope = await self._scope(connection, caller, layer)
            sealed = (row_id, self.sealer.seal(row_id, value))
            await self.repository.put_secret(connection, app.id, scope, secret, sealed=sealed, by=caller.principal.id)
            await self.apps.note(
                connection, caller, app, "app.secret.put", f"Stored the secret '{secret}'.", scope=scope
            )
        return _key(app, scope, secret), self.clock.now()

    async def delete_secret(self, caller: Caller, layer: AppLayer, secret: str) -> None:
        async with self.database.transaction() as connection:
            app, scope = await self._scope(connection, caller, layer)
            if not await self.repository.delete_secret(connection, app.id, scope, secret):
                raise NotFound(f"There is no secret '{secret[:100]}' in this layer.")
            await self.apps.note(
                connection, caller, app, "app.secret.delete", f"Removed the secret '{secret}'.", scope=scope
            )

    async def secrets(self, caller: Caller, layer: AppLayer) -> list[tuple[str, str, datetime]]:
        """(name, key, when it was changed), by name."""
        async with self.database.connection() as connection:
            app, scope = await self._scope(connection, caller, layer)
            rows = await self.repository.secret_names(connection, app.id, scope)
        return [(row["name"], _key(app, scope, row["name"]), row["changed_at"]) for row in rows]

    async def _scope(self, connection: Connection, caller: Caller, layer: AppLayer) -> tuple[App, ConfigScope]:
        app, _, scope = await self.apps.managed_layer(connection, caller, layer, right=_RIGHT)
        return app, scope


def _key(app: App, scope: ConfigScope, secret: str) -> str:
    """As people and other systems name it. There is no file of that name anywhere."""
    parts = [f"app/{app.name}"]
    if scope.project:
        parts.append(f"project/{scope.project}")
    if scope.user is not None:
        parts.append(scope.user.name)
    return "/".join([*parts, "auth", secret])
