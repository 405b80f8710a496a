"""Apps, their configuration, secrets, manifests and knowledge bases in PostgreSQL. Every method works in the caller's
transaction."""

import json
from collections.abc import Collection, Sequence
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.catalog.model import (
    App,
    AppChange,
    AppId,
    ConfigScope,
    KnowledgeBase,
    NewApp,
    PublishedManifest,
    SealedSecret,
    StoredConfig,
    VisibilityRule,
)
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId, ProjectId, Seq
from contextbase.wire.agent_config import AgentConfig, ConfigLayer
from contextbase.wire.app import VisibilityKind
from contextbase.wire.manifest import RuntimeManifest

__all__ = ["AppRepository"]

_SQL: Final = load_queries("contextbase.catalog")
_APP: Final = RowShape(App)


class AppRepository:
    async def insert(
        self, connection: Connection, app_id: AppId, new: NewApp, owner: PrincipalId, tree: ProjectId
    ) -> None:
        """Raises `asyncpg.UniqueViolationError` if the name is taken."""
        await connection.execute(_SQL.insert_app, app_id, new.name, new.title, new.description, new.icon, owner, tree)

    async def find(self, connection: Connection, name: str, asking: PrincipalId) -> App | None:
        row = await connection.fetchrow(_SQL.app_by_name, name, asking)
        return None if row is None else _app(row)

    async def all(self, connection: Connection, asking: PrincipalId, known: Collection[VisibilityRule]) -> list[App]:
        """By name, each with those of its rules alone that are `known`: about whoever asks."""
        kinds, subjects = [str(rule.kind) for rule in known], [rule.subject for rule in known]
        return [_app(row) for row in await connection.fetch(_SQL.apps, asking, kinds, subjects)]

    async def update(self, connection: Connection, app_id: AppId, change: AppChange, owner: PrincipalId | None) -> None:
        await connection.execute(
            _SQL.update_app, app_id, change.title, change.description, change.icon, change.enabled, owner
        )

    async def put_visibility(
        self,
        connection: Connection,
        app_id: AppId,
        rules: Collection[VisibilityRule],
        members: Collection[PrincipalId],
    ) -> None:
        """All of it: what was there before is gone."""
        await connection.execute(_SQL.delete_visibility, app_id)
        await connection.execute(_SQL.delete_members, app_id)
        kinds, subjects = [str(rule.kind) for rule in rules], [rule.subject for rule in rules]
        await connection.execute(_SQL.insert_visibility, app_id, kinds, subjects)
        await connection.execute(_SQL.insert_members, app_id, list(members))

    async def members(self, connection: Connection, app_id: AppId) -> list[Principal]:
        rows = await connection.fetch(_SQL.members, app_id)
        return [Principal.of_row(row, prefix="") for row in rows]

    async def put_project(self, connection: Connection, app_id: AppId, project: str, description: str) -> None:
        await connection.execute(_SQL.insert_project, app_id, project, description)

    async def projects(self, connection: Connection, app_id: AppId) -> list[tuple[str, str]]:
        """(name, description), by name."""
        return [(row["project"], row["description"]) for row in await connection.fetch(_SQL.projects, app_id)]

    async def has_project(self, connection: Connection, app_id: AppId, project: str) -> bool:
        return bool(await connection.fetchval(_SQL.has_project, app_id, project))

    async def head_of(self, connection: Connection, tree: ProjectId) -> Seq:
        return Seq(await connection.fetchval(_SQL.head_of, tree))

    async def insert_manifest(
        self, connection: Connection, app_id: AppId, manifest: RuntimeManifest, tree_seq: Seq, by: PrincipalId
    ) -> bool:
        """False if there is this version already."""
        await connection.execute(_SQL.lock_app, app_id)
        document = json.dumps(manifest.to_json())
        number = await connection.fetchval(
            _SQL.insert_manifest, app_id, manifest.runtime_version, document, tree_seq, by
        )
        return number is not None

    async def manifests(self, connection: Connection, app_id: AppId, *, limit: int) -> list[PublishedManifest]:
        """The latest first."""
        return [_manifest(row) for row in await connection.fetch(_SQL.manifests, app_id, limit)]

    async def manifest(self, connection: Connection, app_id: AppId, version: str | None) -> PublishedManifest | None:
        """None for the version: the latest."""
        row = await connection.fetchrow(_SQL.manifest, app_id, version)
        return None if row is None else _manifest(row)

    async def insert_config(
        self, connection: Connection, app_id: AppId, scope: ConfigScope, config: AgentConfig, by: Principal
    ) -> StoredConfig:
        await connection.execute(_SQL.lock_app, app_id)
        said = {name for name in config.model_fields_set if getattr(config, name) is not None}
        document = config.model_dump_json(include=said, exclude_unset=True)
        [row] = await connection.fetch(_SQL.insert_config, app_id, *scope.key, document, by.id)
        return StoredConfig(
            scope=scope, version=row["version"], config=config, changed_by=str(by), changed_at=row["changed_at"]
        )

    async def config_history(
        self, connection: Connection, app_id: AppId, scope: ConfigScope, *, limit: int
    ) -> list[StoredConfig]:
        """Newest first."""
        return [
            StoredConfig(
                scope=scope,
                version=row["version"],
                config=AgentConfig.model_validate_json(row["config"]),
                changed_by=f"{row['by_kind']}:{row['by_name']}",
                changed_at=row["changed_at"],
            )
            for row in await connection.fetch(_SQL.config_history, app_id, *scope.key, limit)
        ]

    async def config_layers(
        self, connection: Connection, app_id: AppId, project: str, user: PrincipalId
    ) -> dict[ConfigLayer, tuple[int, AgentConfig]]:
        """The version and the document of each layer that has one."""
        rows = await connection.fetch(_SQL.config_layers, app_id, project, user)
        return {
            ConfigLayer(row["scope"]): (row["version"], AgentConfig.model_validate_json(row["config"])) for row in rows
        }

    async def put_secret(
        self,
        connection: Connection,
        app_id: AppId,
        scope: ConfigScope,
        name: str,
        *,
        sealed: tuple[UUID, bytes],
        by: PrincipalId,
    ) -> None:
        """`sealed`: for the row of this id."""
        await connection.execute(_SQL.delete_secret, app_id, *scope.key, name)
        row_id, content = sealed
        await connection.execute(_SQL.put_secret, row_id, app_id, *scope.key, name, content, by)

    async def delete_secret(self, connection: Connection, app_id: AppId, scope: ConfigScope, name: str) -> bool:
        return await connection.fetchval(_SQL.delete_secret, app_id, *scope.key, name) is not None

    async def secret_names(self, connection: Connection, app_id: AppId, scope: ConfigScope) -> Sequence[asyncpg.Record]:
        """(name, changed_at), by name."""
        return await connection.fetch(_SQL.secret_names, app_id, *scope.key)

    async def secrets_for(
        self, connection: Connection, app_id: AppId, project: str, user: PrincipalId, names: Collection[str]
    ) -> dict[str, SealedSecret]:
        """By name, of the nearest layer."""
        rows = await connection.fetch(_SQL.secrets_for, app_id, project, user, list(names))
        return {
            row["name"]: SealedSecret(id=row["id"], layer=ConfigLayer(row["scope"]), sealed=row["sealed"])
            for row in rows
        }

    async def put_knowledge_base(
        self, connection: Connection, row_id: UUID, app_id: AppId, scope: ConfigScope, base: KnowledgeBase
    ) -> None:
        await connection.execute(
            _SQL.put_knowledge_base, row_id, app_id, *scope.key, base.name, base.description, list(base.tags)
        )

    async def delete_knowledge_base(self, connection: Connection, app_id: AppId, scope: ConfigScope, name: str) -> bool:
        return await connection.fetchval(_SQL.delete_knowledge_base, app_id, *scope.key, name) is not None

    async def knowledge_bases(
        self, connection: Connection, app_id: AppId, project: str, user: PrincipalId, tags: Collection[str] | None
    ) -> list[KnowledgeBase]:
        """The app's, the project's and the user's; with any of the tags, if some are given."""
        rows = await connection.fetch(_SQL.knowledge_bases, app_id, project, user, None if tags is None else list(tags))
        return [
            KnowledgeBase(
                layer=ConfigLayer(row["scope"]),
                project=row["project"],
                name=row["name"],
                description=row["description"],
                tags=tuple(row["tags"]),
            )
            for row in rows
        ]


def _app(row: asyncpg.Record) -> App:
    rules = []
    for text in row["rules"]:
        kind, _, subject = text.partition(":")
        rules.append(VisibilityRule(kind=VisibilityKind(kind), subject=subject))
    return _APP(row, owner=f"{row['owner_kind']}:{row['owner_name']}", rules=tuple(rules))


def _manifest(row: asyncpg.Record) -> PublishedManifest:
    return PublishedManifest(
        manifest=RuntimeManifest.model_validate_json(row["manifest"]),
        number=row["number"],
        tree_seq=Seq(row["tree_seq"]),
        created_by=f"{row['by_kind']}:{row['by_name']}",
        created_at=row["created_at"],
    )
