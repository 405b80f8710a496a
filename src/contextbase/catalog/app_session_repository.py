"""Sessions that apps compose, and the parts of apps' trees that they are composed of, in PostgreSQL. Every method works
in the caller's transaction."""

import json
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Final
from uuid import UUID

import asyncpg

from contextbase.catalog.app_keys import AppPlace
from contextbase.catalog.model import App, AppSession
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.wire.agent_config import WorkspaceKind
from contextbase.workspaces.model import FolderContent

__all__ = ["AppSessionRepository"]

_SQL: Final = load_queries("contextbase.catalog")
_SESSION: Final = RowShape(AppSession, overrides=json.loads)


class AppSessionRepository:
    async def insert(
        self,
        connection: Connection,
        session_id: UUID,
        app: App,
        place: AppPlace,
        *,
        pinned_version: str | None,
        overrides: Mapping[str, Any],
        workspace_kind: WorkspaceKind,
    ) -> None:
        """Raises `asyncpg.ForeignKeyViolationError` if there is no such version."""
        await connection.execute(
            _SQL.insert_app_session,
            session_id,
            app.id,
            place.project,
            place.login,
            pinned_version,
            json.dumps(dict(overrides)),
        )
        await connection.execute(_SQL.mark_app_session, session_id, app.id, workspace_kind)

    async def find(self, connection: Connection, session_id: UUID) -> AppSession | None:
        row = await connection.fetchrow(_SQL.app_session, session_id)
        return None if row is None else _SESSION(row, tree=ProjectId(row["project_id"]))

    async def pin(self, connection: Connection, session_id: UUID, version: str | None) -> None:
        """None: it follows the latest. Raises `asyncpg.ForeignKeyViolationError` if there is no such version."""
        await connection.execute(_SQL.pin_app_session, session_id, version)

    async def put_version(self, connection: Connection, session_id: UUID, version: str) -> None:
        """What is stored of the session was composed of this version."""
        await connection.execute(_SQL.put_app_session_version, session_id, version)

    async def head_of(self, connection: Connection, tree: ProjectId) -> Seq:
        return Seq(await connection.fetchval(_SQL.head_of, tree))

    async def below(
        self, connection: Connection, tree: ProjectId, seq: Seq, folder: TreePath
    ) -> dict[TreePath, FolderContent]:
        """What stands in a folder of a snapshot, by the path below it. Whoever asks decided that it may be shown."""
        rows = await connection.fetch(_SQL.tree_below, tree, seq, folder)
        return _contents(rows, skip=len(folder) + 1)

    async def at(
        self, connection: Connection, tree: ProjectId, seq: Seq, paths: Collection[TreePath]
    ) -> dict[TreePath, FolderContent]:
        return _contents(await connection.fetch(_SQL.tree_at, tree, seq, list(paths)))


def _contents(rows: Iterable[asyncpg.Record], *, skip: int = 0) -> dict[TreePath, FolderContent]:
    return {
        TreePath.stored(row["path"][skip:]): FolderContent(
            kind=Kind(row["kind"]),
            hash=None if row["content_hash"] is None else ContentHash(row["content_hash"]),
            size=row["size"],
            executable=row["executable"],
        )
        for row in rows
    }
