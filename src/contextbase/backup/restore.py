"""Brings a backup back, into an empty database and whichever blob store is configured.

Blobs come first: they are named by their content, so that those of a restore that was interrupted do no harm and are
found again. Then schema, rows and new epochs in one transaction: at every moment the database is empty or complete.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Final

import asyncpg

from contextbase.audit.chain import AuditKey
from contextbase.audit.model import SYSTEM_CHAIN
from contextbase.audit.repository import AuditRepository
from contextbase.backup.archive import Snapshot, opened_archive
from contextbase.backup.blob_copy import LONGEST_SECONDS, copy_in
from contextbase.backup.manifest import Anchor, Manifest, ProjectRecord, TableRecord, fingerprint
from contextbase.backup.model import BackupProgress, BlobProgress, OnProgress, Restored, each
from contextbase.data_folder import DataFolder, write_private
from contextbase.db.database import Connection, Database
from contextbase.db.migrations.runner import Migration, all_migrations, migrate_within
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, Damaged, Misconfigured, SchemaTooNew
from contextbase.identity.model import Action, Caller, PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import Clock, ContentHash
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.removal import blobs_kept

__all__ = ["RestoreService"]

_SQL: Final = load_queries("contextbase.backup")


@dataclass(frozen=True, kw_only=True, slots=True)
class RestoreService:
    database: Database
    large_blobs: BlobStore
    data: DataFolder
    configured_key: AuditKey | None  # None: the key goes into the data folder
    clock: Clock

    async def restore(
        self, source: Path, *, snapshot: str | None = None, on_progress: OnProgress = lambda _: None
    ) -> Restored:
        """Bring back a backup: the newest, or one by name.

        Raises `Conflict` when the database is in use already, `SchemaTooNew` when a newer contextbase made the backup,
        `Damaged` when it is not whole. All of these leave the database as it was.
        """
        async with opened_archive(source) as reader:
            chosen = await Snapshot.of(reader, snapshot)
            manifest = chosen.manifest
            migrations = _known(manifest)
            await self._refuse_unless_empty(manifest)
            key = await chosen.audit_key()
            self._check_key(key)
            copying = _BlobCopying(chosen, self.large_blobs, BlobProgress(on_progress, total=manifest.blobs.bytes))
            async with blobs_kept(self.database) as kept:  # no row speaks for them yet
                await each(await chosen.blobs(), copying.copy, at_once=reader.at_once)
                self._keep_key(key)
                async with self.database.transaction() as connection:
                    await migrate_within(connection, migrations)
                    rows = await self._load(connection, chosen, on_progress)
                    await migrate_within(connection, all_migrations())
                    await connection.execute(_SQL.renew_epochs)
                    await connection.execute(_SQL.void_claims)
                    await connection.execute(_SQL.void_leader)
                    await connection.execute(_SQL.void_leases)
                    await connection.execute(_SQL.void_workspaces)
                    await self._record(connection, manifest, key)
                    await kept.confirm()
        return Restored(manifest=manifest, rows=rows, new_blobs=copying.new_blobs)

    async def _refuse_unless_empty(self, manifest: Manifest) -> None:
        async with self.database.connection() as connection:
            if not await connection.fetchval(_SQL.has_schema):
                return
            reached, wanted = await connection.fetchval(_SQL.migrated_to), len(manifest.migrations)
            if reached and await connection.fetchval(_SQL.is_used):
                raise _in_use()
            if reached > wanted:
                raise Conflict(
                    f"The database is empty, but its schema is version {reached} and the backup's is {wanted}. Restore "
                    "into a database that contextbase has not seen yet; the schema is brought forward afterwards."
                )

    def _check_key(self, key: AuditKey) -> None:
        """The trail goes on under the key it was written with, or fsck would find every row altered."""
        if self.configured_key is not None:
            if fingerprint(self.configured_key) != fingerprint(key):
                raise Misconfigured(
                    "CONTEXTBASE_AUDIT_KEY is not the key that the backup's audit trail was written with. Set it as it "
                    "was there, or leave it unset: the key is in the backup."
                )
        elif self.data.key_file("audit").exists() and self.data.secret_key("audit") != key.secret:
            raise Conflict(
                f"{self.data.key_file('audit')} is another key than the backup's audit trail was written with. "
                "Restore into a new data folder, or move that file away if nothing needs it."
            )

    def _keep_key(self, key: AuditKey) -> None:
        if self.configured_key is None:
            write_private(self.data.key_file("audit"), key.secret.hex() + "\n", replace=False)

    async def _load(self, connection: Connection, chosen: Snapshot, on_progress: OnProgress) -> int:
        if await connection.fetchval(_SQL.is_used):
            raise _in_use()
        records = {table.name: table for table in chosen.manifest.tables}
        known = {row["name"]: tuple(row["columns"]) for row in await connection.fetch(_SQL.tables)}
        if {name: set(table.columns) for name, table in records.items()} != {n: set(c) for n, c in known.items()}:
            odd = sorted(records.keys() ^ known.keys()) or ["other columns"]
            raise Damaged(f"The backup's tables are not those of its schema version: {', '.join(odd)}.")
        order: TopologicalSorter[str] = TopologicalSorter({name: set() for name in known})
        for row in await connection.fetch(_SQL.references):
            order.add(row["name"], row["refers_to"])
        loading = _TableLoading(connection, chosen, on_progress)
        for name in order.static_order():
            await loading.load(records[name])
        try:
            await connection.execute(_SQL.check_deferred, timeout=LONGEST_SECONDS)
        except asyncpg.IntegrityConstraintViolationError as error:
            raise Damaged(f"The backup contradicts itself: {error.args[0]}. Use another backup.") from error
        await _compare(connection, chosen.manifest)
        return loading.rows

    async def _record(self, connection: Connection, manifest: Manifest, key: AuditKey) -> None:
        system = await IdentityRepository().ensure_principal(connection, PrincipalKind.SYSTEM, "system")
        await AuditRepository(key).note(
            connection,
            SYSTEM_CHAIN,
            "system.restore",
            f"Restored the backup {manifest.snapshot}; every project has a new epoch.",
            at=self.clock.now(),
            by=Caller.chore(system, frozenset({Action.ADMIN})).actor,
            snapshot=manifest.snapshot,
            started_at=manifest.started_at.isoformat(),
        )


class _TableLoading:
    def __init__(self, connection: Connection, chosen: Snapshot, on_progress: OnProgress) -> None:
        self._connection = connection
        self._chosen = chosen
        self._on_progress = on_progress
        self._done = 0
        self.rows = 0

    async def load(self, table: TableRecord) -> None:
        async with aclosing(self._pieces(table)) as pieces:
            try:
                loaded = await copy_in(self._connection, table, pieces)
            except (asyncpg.IntegrityConstraintViolationError, asyncpg.DataError) as error:
                raise Damaged(
                    f"The table '{table.name}' of the backup cannot be loaded: {error.args[0]}. Use another backup."
                ) from error
        if loaded != table.rows:
            raise Damaged(f"The table '{table.name}' of the backup has {loaded} rows instead of {table.rows}.")
        self.rows += loaded

    async def _pieces(self, table: TableRecord) -> AsyncGenerator[bytes, None]:
        async with aclosing(self._chosen.table(table)) as pieces:
            async for piece in pieces:
                self._done += len(piece)
                total = self._chosen.manifest.table_bytes
                self._on_progress(BackupProgress(stage="tables", done=self._done, total=total))
                yield piece


class _BlobCopying:
    def __init__(self, chosen: Snapshot, store: BlobStore, progress: BlobProgress) -> None:
        self._chosen = chosen
        self._store = store
        self._progress = progress
        self.new_blobs = 0

    async def copy(self, item: tuple[ContentHash, int]) -> None:
        content_hash, size = item
        if await self._store.size(content_hash) == size:
            self._progress.add(size)
            return
        try:
            async with aclosing(self._progress.counted(self._chosen.reader.blob(content_hash))) as pieces:
                await self._store.put(pieces, expected=content_hash)
        except Damaged as error:
            place = self._chosen.reader.place
            raise Damaged(f"The blob {content_hash} in {place} is damaged or missing. Use another backup.") from error
        self.new_blobs += 1


def _known(manifest: Manifest) -> list[Migration]:
    """The migrations that make the backup's schema."""
    ours = all_migrations()
    wanted = manifest.migrations
    if len(wanted) > len(ours):
        raise SchemaTooNew(
            f"The backup was made by contextbase {manifest.contextbase}, which has a newer schema. Upgrade "
            "contextbase, then restore; nothing was changed."
        )
    for known, theirs in zip(ours, wanted, strict=False):
        if known.checksum != theirs.checksum:
            raise Misconfigured(
                f"The backup's schema was made by another migration {theirs.version} ({theirs.name}) than this "
                f"contextbase has. Restore with contextbase {manifest.contextbase}; nothing was changed."
            )
    return ours[: len(wanted)]


async def _compare(connection: Connection, manifest: Manifest) -> None:
    """What was loaded is what the manifest names."""
    projects = tuple(ProjectRecord(**row) for row in await connection.fetch(_SQL.projects))
    anchors = tuple(Anchor(**row) for row in await connection.fetch(_SQL.anchors))
    if (projects, anchors) != (manifest.projects, manifest.audit_anchors):
        raise Damaged(f"The rows of the backup {manifest.snapshot} are not those its manifest names. Use another one.")


def _in_use() -> Conflict:
    return Conflict(
        "The database is in use: it has principals, projects or blobs already. A restore goes into an empty one alone; "
        "choose a new data folder with --data, or point CONTEXTBASE_DATABASE_URL at an empty database."
    )
