"""Makes backups, while others write.

All tables are read in one transaction that sees one moment. Blobs are held in place from before it begins: those the
moment names are still there when their turn comes.
"""

import secrets
from contextlib import aclosing
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

import asyncpg

from contextbase import __version__
from contextbase.audit.chain import AuditKey
from contextbase.backup.archive import BLOB_LIST, KEY_FILE, Parts, begun_archive
from contextbase.backup.blob_copy import LONGEST_SECONDS, copy_out
from contextbase.backup.manifest import (
    FORMAT,
    Anchor,
    BlobsRecord,
    Manifest,
    MigrationRecord,
    ProjectRecord,
    TableRecord,
    fingerprint,
)
from contextbase.backup.model import BackupProgress, BlobProgress, Made, OnProgress, each
from contextbase.backup.ports import BackupWriter
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Damaged
from contextbase.ids import Clock, ContentHash
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.removal import blobs_kept

__all__ = ["BackupService"]

_SQL: Final = load_queries("contextbase.backup")


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupService:
    database: Database
    large_blobs: BlobStore
    audit_key: AuditKey
    clock: Clock

    async def create(self, target: Path, *, on_progress: OnProgress = lambda _: None) -> Made:
        """Back everything up to a folder, or to a new `.tar` file. When this returns, it is durably there.

        Blobs that are damaged or missing already do not stop it: the manifest names them.
        """
        started_at = self.clock.now()
        name = _snapshot_name(started_at)
        async with begun_archive(target, name) as writer, blobs_kept(self.database) as kept:
            async with self.database.transaction(isolation="repeatable_read", readonly=True) as connection:
                migrations = await connection.fetch(_SQL.applied_migrations)
                projects = await connection.fetch(_SQL.projects)
                anchors = await connection.fetch(_SQL.anchors)
                tables = await self._add_tables(connection, writer, on_progress)
                stored = await connection.fetch(_SQL.stored_blobs, timeout=LONGEST_SECONDS)
            listed = await _add_list(writer, stored)
            copying = _BlobCopying(self.large_blobs, writer, BlobProgress(on_progress, total=listed.bytes))
            await each(stored, copying.copy, at_once=writer.at_once)
            await kept.confirm()
            await writer.add(KEY_FILE, self.audit_key.secret.hex().encode() + b"\n")
            manifest = Manifest(
                format=FORMAT,
                snapshot=name,
                contextbase=__version__,
                started_at=started_at,
                finished_at=self.clock.now(),
                migrations=tuple(MigrationRecord(**row) for row in migrations),
                tables=tuple(tables),
                projects=tuple(ProjectRecord(**row) for row in projects),
                audit_anchors=tuple(Anchor(**row) for row in anchors),
                audit_key=fingerprint(self.audit_key),
                blobs=listed,
                damaged=tuple(sorted(copying.damaged)),
            )
            await writer.finish(manifest.to_json())
        return Made(manifest=manifest, new_blobs=copying.new_blobs, new_bytes=copying.new_bytes)

    async def _add_tables(
        self, connection: Connection, writer: BackupWriter, on_progress: OnProgress
    ) -> list[TableRecord]:
        records: list[TableRecord] = []
        done = 0
        for row in await connection.fetch(_SQL.tables):
            name, columns = row["name"], tuple(row["columns"])
            parts = Parts(writer, f"tables/{name}")

            async def take(piece: bytes, parts: Parts = parts, before: int = done) -> None:
                await parts.add(piece)
                on_progress(BackupProgress(stage="tables", done=before + parts.bytes, total=None))

            rows = await copy_out(self.database, connection, name, columns, take)
            sha256 = await parts.finish()
            done += parts.bytes
            records.append(
                TableRecord(
                    name=name,
                    columns=columns,
                    rows=rows,
                    bytes=parts.bytes,
                    parts=parts.count,
                    sha256=sha256,
                )
            )
        on_progress(BackupProgress(stage="tables", done=done, total=done))
        return records


class _BlobCopying:
    def __init__(self, store: BlobStore, writer: BackupWriter, progress: BlobProgress) -> None:
        self._store = store
        self._writer = writer
        self._progress = progress
        self.new_blobs = 0
        self.new_bytes = 0
        self.damaged: list[str] = []

    async def copy(self, row: asyncpg.Record) -> None:
        content_hash, size = ContentHash(row["hash"]), row["size"]
        if await self._writer.holds(content_hash, size):
            self._progress.add(size)
            return
        try:
            async with aclosing(self._progress.counted(self._store.get(content_hash))) as pieces:
                await self._writer.add_blob(content_hash, size, pieces)
        except Damaged:
            self.damaged.append(str(content_hash))
        else:
            self.new_blobs += 1
            self.new_bytes += size


async def _add_list(writer: BackupWriter, stored: list[asyncpg.Record]) -> BlobsRecord:
    parts = Parts(writer, BLOB_LIST)
    for row in stored:
        await parts.add(f"{row['hash'].hex()} {row['size']}\n".encode())
    return BlobsRecord(
        count=len(stored), bytes=sum(row["size"] for row in stored), sha256=await parts.finish(), parts=parts.count
    )


def _snapshot_name(now: datetime) -> str:
    """Sorts by time; two of one millisecond differ."""
    return f"{now:%Y-%m-%dT%H-%M-%S}-{now.microsecond // 1000:03d}Z-{secrets.token_hex(2)}"
