"""Points of a conversation to go back to, and rewinds that a machine has still to carry out, in the database."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final
from uuid import UUID

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.ids import new_uuid
from contextbase.sessions.model import AgentRun, RunId, SessionId
from contextbase.sessions.repository import run_of_row
from contextbase.sessions.snapshot_model import SessionSnapshot, SnapshotId

__all__ = ["DueRewind", "RewindRepository"]

_SQL: Final = load_queries("contextbase.sessions")


@dataclass(frozen=True, kw_only=True, slots=True)
class DueRewind:
    """What the machine with the session's folder does before the next run."""

    id: UUID
    snapshot_id: SnapshotId | None  # None: the agent program begins without its memory
    with_files: bool


class RewindRepository:
    """Every method works in the caller's transaction."""

    async def last_begun(
        self, connection: Connection, session_id: SessionId, *, before: int, provider: str | None = None
    ) -> AgentRun | None:
        """The newest run before a number in which an agent worked, of a provider or of any."""
        row = await connection.fetchrow(_SQL.last_begun, session_id, before, provider)
        return None if row is None else run_of_row(row)

    async def runs_after(self, connection: Connection, session_id: SessionId, number: int) -> list[AgentRun]:
        """Those that are not hidden, in order."""
        return list(map(run_of_row, await connection.fetch(_SQL.runs_after, session_id, number)))

    async def runs_until(self, connection: Connection, session_id: SessionId, number: int) -> list[AgentRun]:
        """Those that are not hidden, in order."""
        return list(map(run_of_row, await connection.fetch(_SQL.runs_until, session_id, number)))

    async def hide_runs(self, connection: Connection, session_id: SessionId, *, after: int) -> None:
        await connection.execute(_SQL.hide_runs, session_id, after)

    async def forget_snapshots(self, connection: Connection, run_id: RunId) -> None:
        """They show more of the run than its conversation does."""
        await connection.execute(_SQL.forget_snapshots_of_run, run_id)

    async def put(
        self, connection: Connection, session_id: SessionId, snapshot: SessionSnapshot | None, *, with_files: bool
    ) -> None:
        """From the next run on the agent program remembers what the snapshot has."""
        known: Mapping[str, str] = {} if snapshot is None else snapshot.sdk_session_ids
        await connection.execute(_SQL.reset_sdk_sessions, session_id, json.dumps(dict(known)))
        snapshot_id = None if snapshot is None else snapshot.id
        await connection.execute(_SQL.put_rewind, session_id, new_uuid(), snapshot_id, with_files)

    async def due(self, connection: Connection, session_id: SessionId) -> DueRewind | None:
        row = await connection.fetchrow(_SQL.due_rewind, session_id)
        if row is None:
            return None
        snapshot_id = row["snapshot_id"]
        return DueRewind(
            id=row["id"],
            snapshot_id=None if snapshot_id is None else SnapshotId(snapshot_id),
            with_files=row["with_files"],
        )

    async def due_on(self, connection: Connection, machine: str) -> frozenset[SessionId]:
        """The sessions whose folder a machine has, and has to take back."""
        return frozenset(SessionId(row["session_id"]) for row in await connection.fetch(_SQL.due_rewinds, machine))

    async def finish(self, connection: Connection, session_id: SessionId, rewind_id: UUID) -> None:
        """It is carried out; a later one stays."""
        await connection.execute(_SQL.finish_rewind, session_id, rewind_id)

    async def copy_runs(self, connection: Connection, session_id: SessionId, copies: Mapping[RunId, RunId]) -> None:
        """Runs of another session, by the ids that they get in this one."""
        await connection.execute(_SQL.copy_runs, session_id, list(copies), list(copies.values()))

    async def become_fork(
        self,
        connection: Connection,
        session_id: SessionId,
        *,
        of: SessionId,
        last_run: int,
        snapshot: SessionSnapshot | None,
    ) -> None:
        known: Mapping[str, str] = {} if snapshot is None else snapshot.sdk_session_ids
        await connection.execute(_SQL.become_fork, session_id, of, last_run, json.dumps(dict(known)))
