"""Session snapshots in the database. Their contents are blobs, which the rows keep from being collected."""

import json
from collections.abc import Sequence
from typing import Final

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.ids import ContentHash, Seq, new_uuid
from contextbase.sessions.model import RunId, SessionId
from contextbase.sessions.snapshot_model import SessionFile, SessionSnapshot, SnapshotId, SnapshotReason, StoredPiece
from contextbase.storage.model import Kind

__all__ = ["SnapshotRepository"]

_SQL: Final = load_queries("contextbase.sessions")
_SNAPSHOT: Final = RowShape(SessionSnapshot, reason=SnapshotReason, sdk_session_ids=json.loads)


class SnapshotRepository:
    """Every method works in the caller's transaction."""

    async def insert(self, connection: Connection, snapshot: SessionSnapshot, files: Sequence[SessionFile]) -> None:
        """All of its contents must be stored, and found there."""
        await connection.execute(
            _SQL.insert_snapshot,
            snapshot.id,
            snapshot.session_id,
            snapshot.run_id,
            snapshot.message_id,
            snapshot.project_id,
            snapshot.epoch,
            snapshot.base,
            snapshot.reason,
            snapshot.files,
            snapshot.bytes,
            json.dumps(dict(snapshot.sdk_session_ids)),
        )
        rows = [(file, at, piece) for file in files for at, piece in enumerate(file.pieces or (None,))]
        await connection.execute(
            _SQL.insert_snapshot_files,
            snapshot.id,
            [file.name for file, _, _ in rows],
            [at for _, at, _ in rows],
            [file.kind for file, _, _ in rows],
            [None if piece is None else piece.hash for _, _, piece in rows],
            [0 if piece is None else piece.size for _, _, piece in rows],
            [0o755 if file.executable else 0o644 for file, _, _ in rows],
            [file.base for file, _, _ in rows],
        )

    async def newest(self, connection: Connection, session_id: SessionId) -> SessionSnapshot | None:
        row = await connection.fetchrow(_SQL.newest_snapshot, session_id)
        return None if row is None else _snapshot(row)

    async def get(self, connection: Connection, snapshot_id: SnapshotId) -> SessionSnapshot | None:
        row = await connection.fetchrow(_SQL.snapshot_by_id, snapshot_id)
        return None if row is None else _snapshot(row)

    async def after(self, connection: Connection, session_id: SessionId, number: int) -> SessionSnapshot | None:
        """As the session was after that run; None: no snapshot shows that."""
        row = await connection.fetchrow(_SQL.snapshot_after, session_id, number)
        return None if row is None else _snapshot(row)

    async def copy(
        self,
        connection: Connection,
        snapshot: SessionSnapshot,
        session_id: SessionId,
        run_id: RunId | None,
        *,
        base: Seq | None = None,
    ) -> None:
        """The same, for another session and its run. `base`: from which its files are made there, if it is in another
        folder."""
        copied = SnapshotId(new_uuid())
        await connection.execute(_SQL.copy_snapshot, snapshot.id, copied, session_id, run_id, base)
        await connection.execute(_SQL.copy_snapshot_files, snapshot.id, copied, base)

    async def files(self, connection: Connection, snapshot_id: SnapshotId) -> list[SessionFile]:
        """In name order."""
        files: dict[bytes, SessionFile] = {}
        for row in await connection.fetch(_SQL.snapshot_files, snapshot_id):
            name, content_hash = row["path"], row["content_hash"]
            piece = () if content_hash is None else (StoredPiece(hash=ContentHash(content_hash), size=row["size"]),)
            files[name] = SessionFile(
                name=name,
                kind=Kind(row["kind"]),
                pieces=(*files[name].pieces, *piece) if name in files else piece,
                executable=bool(row["mode"] & 0o100),
                base=None if row["base_seq"] is None else Seq(row["base_seq"]),
            )
        return list(files.values())

    async def prune(self, connection: Connection, session_id: SessionId, *, kept: int) -> None:
        """All but the newest, and the last one of each run."""
        await connection.execute(_SQL.prune_snapshots, session_id, kept)


def _snapshot(row: asyncpg.Record) -> SessionSnapshot:
    return _SNAPSHOT(row, base=Seq(row["base_seq"]))
