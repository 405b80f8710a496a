"""A project's history as operations on files: what its commits did, whichever way they came."""

import re
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import InvalidInput
from contextbase.files.model import FileAction, FileOperation, HistoryPage
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.storage.model import Kind

__all__ = ["project_history"]

_SQL: Final = load_queries("contextbase.files")
_PAGE: Final = 500
_MOST_SCANNED: Final = 20_000  # versions looked at for one page, if most of them are hidden
_CURSOR: Final = re.compile(r"([0-9]{1,18})\.([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
_AFTER_ALL: Final = (2**62, UUID(int=0))


async def project_history(
    connection: Connection,
    project_id: ProjectId,
    authority: PathAuthority,
    *,
    node_id: NodeId | None,
    before: str | None,
    limit: int,
    tells_origins: bool,
) -> HistoryPage:
    """A page may be short and still name a next one: only so much that is hidden is passed over at a time."""
    place = _AFTER_ALL if before is None else _parsed(before)
    found: list[FileOperation] = []
    scanned = 0
    while True:
        rows = await connection.fetch(_SQL.project_history, project_id, *place, node_id, _PAGE)
        for row in rows:
            place = (row["seq"], row["node_id"])
            operation = _operation(row, authority, tells_origins=tells_origins)
            if operation is not None:
                found.append(operation)
            if len(found) == limit:
                return HistoryPage(operations=tuple(found), next_before=found[-1].cursor)
        scanned += len(rows)
        if len(rows) < _PAGE:
            return HistoryPage(operations=tuple(found), next_before=None)
        if scanned >= _MOST_SCANNED:
            return HistoryPage(operations=tuple(found), next_before=f"{place[0]}.{place[1]}")


def _parsed(cursor: str) -> tuple[int, UUID]:
    match = _CURSOR.fullmatch(cursor)
    if match is None:
        raise InvalidInput(f"{cursor[:80]!r} is not a place in a history; pass one that a page gave.")
    return int(match[1]), UUID(match[2])


def _operation(row: asyncpg.Record, authority: PathAuthority, *, tells_origins: bool) -> FileOperation | None:
    """What the caller may see of it: a file that came from a hidden place was made, one that went to such a place is
    gone."""
    path, path_now = TreePath.stored(row["path"]), TreePath.stored(row["path_now"])
    was_there = row["kind_before"] not in (None, Kind.DELETED)
    path_before = TreePath.stored(row["path_before"]) if was_there else None
    sees_before = path_before is not None and authority.sees(path_before)
    kind, new_hash = Kind(row["kind"]), _hash(row["content_hash"])
    if not authority.shows(path, path_now):
        if not sees_before or path_before is None or path_before == path:
            return None
        path, path_before, kind, new_hash = path_before, None, Kind.DELETED, None
    elif not sees_before:
        path_before = None
    moved = path_before not in (None, path)
    return FileOperation(
        cursor=f"{row['seq']}.{row['node_id']}",  # not by path: that may be hidden
        at=row["committed_at"],
        action=_action(kind, moved=moved),
        path=path,
        previous_path=path_before if moved else None,
        kind=kind,
        old_hash=_hash(row["hash_before"]) if sees_before else None,
        new_hash=new_hash,
        size=0 if kind is Kind.DELETED else row["size"],
        operator_type=row["operator_type"],
        principal=f"{row['principal_kind']}:{row['principal_name']}",
        message_id=row["message_id"],
        origin=(row["origin"] or "") if tells_origins else "",
        seq=Seq(row["seq"]),
    )


def _action(kind: Kind, *, moved: bool) -> FileAction:
    if kind is Kind.DELETED:
        return FileAction.DELETE
    if moved:
        return FileAction.RENAME
    return FileAction.MAKE_FOLDER if kind is Kind.DIRECTORY else FileAction.WRITE


def _hash(value: bytes | None) -> ContentHash | None:
    return None if value is None else ContentHash(value)
