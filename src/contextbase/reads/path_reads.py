"""What stands at paths, in any snapshot, for callers who ask at the same time: one reading for all of them."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from contextbase.db.coalescer import Coalescer
from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.gate.service import Gate, OpenedProject
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId, Seq, TreePath

__all__ = ["PathReads"]

_SQL: Final = load_queries("contextbase.gate")
_MOST_AT_ONCE: Final = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class _Asked:
    caller: Caller
    paths: Sequence[TreePath]
    seq: Seq | None  # None: the head


class PathReads:
    def __init__(self, database: Database, gate: Gate) -> None:
        self._database = database
        self._gate = gate
        self._together = Coalescer(self._read, most=_MOST_AT_ONCE)

    async def at(
        self, caller: Caller, project_id: ProjectId, paths: Sequence[TreePath], *, seq: Seq | None
    ) -> tuple[OpenedProject, list[asyncpg.Record]]:
        """The head, and what stands at the paths in a snapshot (None: the head), in path order: to be shown only as far
        as the caller may see it. Raises `NotFound`."""
        return await self._together.ask(project_id, _Asked(caller=caller, paths=paths, seq=seq))

    async def _read(
        self, project_id: ProjectId, asked: Sequence[_Asked]
    ) -> list[tuple[OpenedProject, list[asyncpg.Record]]]:
        pairs = dict.fromkeys((path, one.seq) for one in asked for path in one.paths)
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                _SQL.snapshot_paths, project_id, [path for path, _ in pairs], [seq for _, seq in pairs]
            )
            callers = [one.caller for one in asked]
            opened = await self._gate.opened_by(connection, project_id, rows[0] if rows else None, callers)
        found = {(row["path"], row["asked_seq"]): row for row in rows}
        return [
            (head, [found[path, one.seq] for path in sorted(set(one.paths)) if (path, one.seq) in found])
            for head, one in zip(opened, asked, strict=True)
        ]
