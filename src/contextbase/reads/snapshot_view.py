"""A snapshot as one caller may see it."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.reads.model import SnapshotEntry
from contextbase.storage.tree import path_range

__all__ = ["VisibleSnapshot", "part_of"]

_SQL: Final = load_queries("contextbase.gate")


@dataclass(frozen=True, kw_only=True, slots=True)
class VisibleSnapshot:
    project_id: ProjectId
    epoch: UUID
    seq: Seq
    policy_version: int
    authority: PathAuthority
    only: TreePath | None  # all that the token is for

    @property
    def key(self) -> tuple[ProjectId, UUID, Seq, int]:
        """Names the snapshot for good: after a restore the epoch is another, after a purge the policy version is."""
        return self.project_id, self.epoch, self.seq, self.policy_version

    def range_below(self, folder: TreePath | None) -> tuple[str, str] | None:
        """The range of paths to look for entries below a folder in, without what the token cannot see anyway; None:
        there is nothing to look for."""
        if folder is not None and self.authority.shows_nothing_in(folder):
            return None
        only = self.only
        if only is None or (folder is not None and (folder == only or folder.is_below(only))):
            return path_range(folder)
        return (only, f"{only}0") if folder is None or only.is_below(folder) else None

    def behind(self, path: TreePath) -> str:
        """Where to look on after a path: behind the folder around it of which nothing is shown, if there is one."""
        hidden = [folder for folder in path.folders if self.authority.shows_nothing_in(folder)]
        return f"{hidden[-1]}0" if hidden else path

    def shows(self, row: asyncpg.Record) -> bool:
        return self.authority.shows(TreePath.stored(row["path"]), TreePath.stored(row["path_now"]))

    async def shown(self, connection: Connection, rows: Sequence[asyncpg.Record]) -> list[asyncpg.Record]:
        """Those that the caller may see, where they stood and where their nodes are now."""
        there = [row for row in rows if self.authority.sees(TreePath.stored(row["path"]))]
        heads = await connection.fetch(_SQL.node_heads, self.project_id, [row["node_id"] for row in there])
        now = {row["node_id"]: TreePath.stored(row["path"]) for row in heads}
        return [
            row
            for row in there
            if row["node_id"] in now and self.authority.shows(TreePath.stored(row["path"]), now[row["node_id"]])
        ]


def part_of(tree: Sequence[SnapshotEntry], folder: TreePath | None, after: str, limit: int) -> list[SnapshotEntry]:
    """Entries of a whole tree that lie below a folder, after a path."""
    first, end = path_range(folder)
    start = bisect_left(tree, first, key=_path) if first > after else bisect_right(tree, after, key=_path)
    return list(tree[start : min(start + limit, bisect_left(tree, end, key=_path))])


def _path(entry: SnapshotEntry) -> str:
    return entry.path
