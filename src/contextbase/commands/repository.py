"""Which sandboxes there are on workspaces, in the database."""

import json
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.commands.model import SandboxRecord
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.identity.model import Principal
from contextbase.ids import PrincipalId, ProjectId, TreePath
from contextbase.limits import ResourceLimits
from contextbase.sandbox.model import Network, SandboxId
from contextbase.workspaces.model import WorkspaceId

__all__ = ["SandboxOfNode", "SandboxRepository"]

_SQL: Final = load_queries("contextbase.commands")


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxOfNode:
    id: SandboxId
    workspace_id: WorkspaceId
    driver: str
    has_ended: bool  # its workspace
    is_idle: bool


class SandboxRepository:
    """Every method works in the caller's transaction."""

    async def insert(self, connection: Connection, record: SandboxRecord) -> datetime | None:
        """When it was made; None when the workspace has one already."""
        made_at: datetime | None = await connection.fetchval(
            _SQL.insert_sandbox,
            record.id,
            record.workspace_id,
            record.node,
            record.driver,
            record.network,
            json.dumps(asdict(record.limits)),
        )
        return made_at

    async def get(
        self, connection: Connection, sandbox_id: SandboxId, *, within: TreePath | None = None
    ) -> SandboxRecord | None:
        """`within`: only if its workspace was made with a token for that folder, or one in it."""
        return _record(await connection.fetchrow(_SQL.sandbox, sandbox_id, within))

    async def of_workspace(self, connection: Connection, workspace_id: WorkspaceId) -> SandboxRecord | None:
        return _record(await connection.fetchrow(_SQL.sandbox_of_workspace, workspace_id))

    async def page(
        self,
        connection: Connection,
        *,
        project_id: ProjectId | None,
        agent: PrincipalId | None,
        before: SandboxId | None,
        limit: int,
        within: TreePath | None = None,
    ) -> list[SandboxRecord]:
        """Newest first; `within` as in `get`."""
        rows = await connection.fetch(_SQL.sandbox_page, project_id, agent, before, limit, within)
        return [record for row in rows if (record := _record(row)) is not None]

    async def of_node(self, connection: Connection, node: str, *, idle_seconds: float) -> list[SandboxOfNode]:
        return list(map(_OF_NODE, await connection.fetch(_SQL.sandboxes_of_node, node, idle_seconds)))

    async def without_leave(self, connection: Connection, node: str) -> list[tuple[SandboxId, str]]:
        """(sandbox, its driver) of people who may not use them any more."""
        rows = await connection.fetch(_SQL.sandboxes_without_leave, node)
        return [(_sandbox_id(row["id"]), row["driver"]) for row in rows]

    async def seen(self, connection: Connection, sandbox_id: SandboxId) -> None:
        await connection.execute(_SQL.see_sandbox, sandbox_id)

    async def removed(self, connection: Connection, sandbox_id: SandboxId) -> None:
        await connection.execute(_SQL.sandbox_removed, sandbox_id)


def _sandbox_id(stored: UUID) -> SandboxId:
    return SandboxId(int=stored.int)


def _workspace_id(stored: UUID) -> WorkspaceId:
    return WorkspaceId(int=stored.int)


_OF_NODE: Final = RowShape(SandboxOfNode, id=_sandbox_id, workspace_id=_workspace_id)
_RECORD: Final = RowShape(
    SandboxRecord,
    id=_sandbox_id,
    workspace_id=_workspace_id,
    network=Network,
    limits=lambda stored: ResourceLimits(**json.loads(stored)),
)


def _record(row: asyncpg.Record | None) -> SandboxRecord | None:
    if row is None:
        return None
    return _RECORD(row, principal=Principal.of_row(row))
