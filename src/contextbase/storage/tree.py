"""Reads of the versioned tree: a snapshot, a folder, a node, a difference, a chain. All paged, all by index."""

import json
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

import asyncpg

from contextbase.audit.model import WayIn
from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.storage.model import Child, Commit, Kind, NodeChange, Version

__all__ = ["ChildrenPage", "NodeChangePage", "TreeRepository", "path_range", "version_of_row"]

_SQL: Final = load_queries("contextbase.storage")
_AFTER_EVERY_PATH: Final = "\U0010ffff" * 257  # a path has at most 1024 bytes: 256 of these
_KINDS: Final = {kind.value: kind for kind in Kind}  # quicker than to call it, for thousands of rows
_NO_NODE: Final = UUID(int=0)
_ABOVE_EVERY_NUMBER: Final = 2**31 - 1


@dataclass(frozen=True, kw_only=True, slots=True)
class ChildrenPage:
    children: tuple[Child, ...]
    next_from: str | None  # pass as `start` for the next page; None at the end


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeChangePage:
    changes: tuple[NodeChange, ...]
    next_after: NodeId | None  # pass as `after` for the next page; None at the end


class TreeRepository:
    """Says what is stored, not who may see it: policies filter above."""

    async def page(
        self,
        connection: Connection,
        project_id: ProjectId,
        seq: Seq,
        *,
        below: TreePath | None = None,
        after: TreePath | None = None,
        limit: int = 1000,
    ) -> list[Version]:
        """Snapshot `seq` in path order, whole or below a folder, after a path."""
        first, end = path_range(below)
        rows = await connection.fetch(_SQL.tree_page, project_id, first, end, after or "", seq, limit)
        return [version_of_row(row) for row in rows]

    async def children(
        self,
        connection: Connection,
        project_id: ProjectId,
        seq: Seq,
        *,
        folder: TreePath | None = None,
        start: str | None = None,
        limit: int = 1000,
    ) -> ChildrenPage:
        """One folder's entries; the cost grows with the page, not with what lies deeper."""
        first, end = path_range(folder)
        rows = await connection.fetch(_SQL.children_page, project_id, first, end, start or first, seq, limit)
        children = []
        for row in rows:
            if row["slash"]:
                name = row["path"][len(first) : len(first) + row["slash"] - 1]
                children.append(Child(name=name, kind=Kind.DIRECTORY, version=None))
            else:
                version = version_of_row(row)
                children.append(Child(name=version.path.name, kind=version.kind, version=version))
        if len(rows) < limit:
            return ChildrenPage(children=tuple(children), next_from=None)
        last = children[-1]
        bound = first + last.name + ("0" if last.version is None else "\x01")
        return ChildrenPage(children=tuple(children), next_from=bound)

    async def node(self, connection: Connection, project_id: ProjectId, node_id: NodeId, seq: Seq) -> Version | None:
        """A node's state in a snapshot: of kind deleted once it was deleted, None before it existed."""
        row = await connection.fetchrow(_SQL.node_at, project_id, node_id, seq)
        return version_of_row(row) if row else None

    async def at_path(self, connection: Connection, project_id: ProjectId, path: TreePath, seq: Seq) -> Version | None:
        row = await connection.fetchrow(_SQL.path_at, project_id, path, seq)
        return version_of_row(row) if row else None

    async def diff(
        self,
        connection: Connection,
        project_id: ProjectId,
        old: Seq,
        new: Seq,
        *,
        after: NodeId | None = None,
        limit: int = 1000,
    ) -> NodeChangePage:
        """What differs between two snapshots (old <= new), in node order: O(changes) however large the tree is."""
        rows = await connection.fetch(_SQL.diff_page, project_id, old, new, after or _NO_NODE, limit)
        changes = [
            NodeChange(before=_version_of_json(row["before"]), after=_version_of_json(row["after"])) for row in rows
        ]
        changes = [change for change in changes if change.before != change.after]
        next_after = NodeId(rows[-1]["touched_id"]) if len(rows) == limit else None
        return NodeChangePage(changes=tuple(changes), next_after=next_after)

    async def chain(
        self,
        connection: Connection,
        project_id: ProjectId,
        node_id: NodeId,
        *,
        below: int | None = None,
        limit: int = 100,
    ) -> list[Version]:
        """A node's versions, newest first, below a number."""
        rows = await connection.fetch(_SQL.chain_page, project_id, node_id, below or _ABOVE_EVERY_NUMBER, limit)
        return [version_of_row(row) for row in rows]

    async def commits(
        self, connection: Connection, project_id: ProjectId, *, after: Seq | None = None, limit: int = 100
    ) -> list[Commit]:
        rows = await connection.fetch(_SQL.commit_page, project_id, after or 0, limit)
        return [
            Commit(
                seq=Seq(row["seq"]),
                id=row["id"],
                principal_id=row["principal_id"],
                way_in=WayIn(row["operator_type"]),
                message=row["message"],
                committed_at=row["committed_at"],
            )
            for row in rows
        ]


def path_range(folder: TreePath | None) -> tuple[str, str]:
    """The half-open range of paths below a folder: '/' is followed by '0' in byte order."""
    return ("", _AFTER_EVERY_PATH) if folder is None else (f"{folder}/", f"{folder}0")


def version_of_row(row: asyncpg.Record | dict[str, Any]) -> Version:
    return Version(
        node_id=NodeId(row["node_id"]),
        number=row["number"],
        seq=Seq(row["seq"]),
        path=TreePath.stored(row["path"]),
        kind=_KINDS[row["kind"]],
        content_hash=None if row["content_hash"] is None else ContentHash(row["content_hash"]),
        size=row["size"],
        executable=row["executable"],
        mime=row["mime"],
        base_number=row["base_number"],
        merged_number=row["merged_number"],
        sent_hash=None if row["sent_hash"] is None else ContentHash(row["sent_hash"]),
    )


def _version_of_json(text: str | None) -> Version | None:
    if text is None:
        return None
    row = json.loads(text)
    row["node_id"] = UUID(row["node_id"])
    for name in ("content_hash", "sent_hash"):
        row[name] = None if row[name] is None else bytes.fromhex(row[name])
    return version_of_row(row)
