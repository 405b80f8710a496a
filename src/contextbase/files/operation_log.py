"""What was done to the files of workspaces: rows that outlive them, events that tell at once, and the audit trail."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Final

import asyncpg

from contextbase.audit.model import AuditEntry
from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.errors import InvalidInput
from contextbase.files.model import FileAction, FileOperation, HistoryPage
from contextbase.identity.model import Caller
from contextbase.ids import Clock, ContentHash, PrincipalId, ProjectId, TreePath
from contextbase.storage.model import Kind
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.repository import StreamRepository
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.place_paths import PlacePaths

__all__ = ["NewOperation", "OperationBatch", "OperationLog"]

_SQL: Final = load_queries("contextbase.files")
_OPERATION: Final = RowShape(
    FileOperation,
    action=FileAction,
    path=TreePath.stored,
    previous_path=TreePath.stored,
    kind=Kind,
    old_hash=ContentHash,
    new_hash=ContentHash,
)
_MOST_EVENTS: Final = 1000
_ABOVE_ALL: Final = 2**62
_VERBS: Final = {
    FileAction.WRITE: "wrote",
    FileAction.DELETE: "deleted",
    FileAction.RENAME: "renamed",
    FileAction.MAKE_FOLDER: "made the folder",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class NewOperation:
    action: FileAction
    path: TreePath | None = None
    previous_path: TreePath | None = None
    kind: Kind = Kind.FILE
    old_hash: ContentHash | None = None
    new_hash: ContentHash | None = None
    size: int = 0
    executable: bool = False
    modified_ns: int = 0
    stamp: int = 0
    operator_type: str
    principal_id: PrincipalId


@dataclass(frozen=True, kw_only=True, slots=True)
class OperationBatch:
    """What one request did in a workspace."""

    project_id: ProjectId
    workspace_id: WorkspaceId
    paths: PlacePaths  # of the workspace, whose own the operations name
    operations: Sequence[NewOperation]
    by: Caller
    message_id: str | None = None
    summary: str | None = None  # audited as one thing: the rest of a sentence that begins with the caller's name


class OperationLog:
    def __init__(
        self,
        *,
        database: Database,
        streams: StreamRepository,
        audit: AuditRepository,
        clock: Clock,
        hint: Callable[[Scope], None],
    ) -> None:
        self._database = database
        self._streams = streams
        self._audit = audit
        self._clock = clock
        self._hint = hint

    async def record(self, batch: OperationBatch) -> datetime:
        """Note the operations, audit them, and tell the workspace's readers; returns when that was."""
        scope, now = Scope.workspace(batch.workspace_id), self._clock.now()
        events = [_event(batch, one) for one in batch.operations[:_MOST_EVENTS]]
        async with self._database.transaction() as connection:
            await self._streams.append(connection, scope, events)  # holds the stream, and so the numbers
            await _insert(connection, batch, now)
            await self._audit.append(connection, batch.project_id, _audited(batch, now))
        self._hint(scope)
        return now

    async def page(
        self, workspace_id: WorkspaceId, path: TreePath | None, *, before: str | None, limit: int, tells_origins: bool
    ) -> HistoryPage:
        if before is not None and not (before.isascii() and before.isdigit() and len(before) <= 18):
            raise InvalidInput(f"{before[:80]!r} is not a place in a history; pass one that a page gave.")
        number = _ABOVE_ALL if before is None else int(before)
        async with self._database.connection() as connection:
            if path is None:
                rows = await connection.fetch(_SQL.operations_page, workspace_id, number, limit)
            else:
                renames = await connection.fetch(_SQL.renames_in_workspace, workspace_id)
                stood = _places_of(path, [(row["number"], row["path"], row["previous_path"]) for row in renames])
                rows = await connection.fetch(
                    _SQL.operations_of_file, workspace_id, number, limit, *map(list, zip(*stood, strict=True))
                )
        found = tuple(_operation(row, tells_origins=tells_origins) for row in rows)
        return HistoryPage(operations=found, next_before=found[-1].cursor if len(found) == limit else None)

    async def since(self, workspace_id: WorkspaceId, number: int) -> list[dict[str, Any]]:
        """The operations after a number, in order, as `RegisteredTree` replays them."""
        async with self._database.connection() as connection:
            rows = await connection.fetch(_SQL.operations_since, workspace_id, number)
        return list(map(dict, rows))

    async def last_sync(self, workspace_id: WorkspaceId) -> datetime | None:
        async with self._database.connection() as connection:
            found: datetime | None = await connection.fetchval(_SQL.last_sync, workspace_id)
        return found


async def _insert(connection: Connection, batch: OperationBatch, at: datetime) -> None:
    last = await connection.fetchval(_SQL.last_operation_number, batch.workspace_id)
    operations, count = batch.operations, len(batch.operations)
    await connection.execute(
        _SQL.insert_operations,
        batch.workspace_id,
        batch.project_id,
        list(range(last + 1, last + 1 + count)),
        [one.action for one in operations],
        [one.path for one in operations],
        [one.previous_path for one in operations],
        [one.kind for one in operations],
        [one.old_hash for one in operations],
        [one.new_hash for one in operations],
        [one.size for one in operations],
        [one.executable for one in operations],
        [one.modified_ns for one in operations],
        [one.stamp for one in operations],
        [one.operator_type for one in operations],
        [one.principal_id for one in operations],
        [batch.message_id] * count,
        [batch.by.origin] * count,
        [at] * count,
    )


def _event(batch: OperationBatch, operation: NewOperation) -> NewEvent:
    payload: dict[str, object] = {
        "path": operation.path,
        "previous_path": operation.previous_path,
        "kind": operation.kind,
        "size": operation.size,
        "hash": None if operation.new_hash is None else str(operation.new_hash),
        "operator_type": operation.operator_type,
        "message_id": batch.message_id,
    }
    place = _in_project(batch, operation.path)
    return NewEvent(kind=f"file.{operation.action}", principal_id=operation.principal_id, path=place, payload=payload)


def _in_project(batch: OperationBatch, path: TreePath | None) -> TreePath | None:
    return None if path is None else batch.paths.in_project(path)


def _audited(batch: OperationBatch, at: datetime) -> list[AuditEntry]:
    actor, name = batch.by.actor, batch.by.principal.name
    details: dict[str, object] = {"workspace_id": str(batch.workspace_id)}
    if batch.message_id is not None:
        details["message_id"] = batch.message_id
    if batch.summary is not None:
        return [AuditEntry(at=at, by=actor, action="file.sync", summary=f"{name} {batch.summary}.", details=details)]
    return [
        AuditEntry(
            at=at,
            by=actor,
            action=f"file.{one.action}",
            summary=f"{name} {_VERBS[one.action]} {one.previous_path or one.path} in a workspace.",
            path=_in_project(batch, one.previous_path or one.path),
            old_hash=one.old_hash,
            new_hash=one.new_hash,
            details=details if one.previous_path is None else details | {"target": _in_project(batch, one.path)},
        )
        for one in batch.operations
    ]


def _places_of(path: TreePath, renames: Sequence[tuple[int, str, str]]) -> list[tuple[str, int, int]]:
    """Where a file stood that is at the path now: each path, after which operation, and up to which. A rename belongs
    to the path it led to. `renames`: the newest first."""
    place, until = str(path), _ABOVE_ALL
    stood = []
    for number, target, previous in renames:
        if number <= until and (place == target or place.startswith(f"{target}/")):
            stood.append((place, number - 1, until))
            place, until = previous + place[len(target) :], number - 1
    stood.append((place, 0, until))
    return stood


def _operation(row: asyncpg.Record, *, tells_origins: bool) -> FileOperation:
    return _OPERATION(
        row,
        cursor=str(row["number"]),
        principal=f"{row['principal_kind']}:{row['principal_name']}",
        origin=row["origin"] if tells_origins else "",
        seq=None,
    )
