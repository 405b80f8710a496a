"""What every group of services stands on: database, audit trail, blobs, hints, workers and metrics."""

import logging
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from prometheus_client import CollectorRegistry

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository, has_begun
from contextbase.bootstrap.blobs import large_blob_store
from contextbase.bootstrap.database import open_database
from contextbase.compute.pool import ComputePool
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database
from contextbase.db.migrations.runner import migrate
from contextbase.errors import Misconfigured
from contextbase.ids import Clock, SystemClock
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.streams.notifier import Notifier

__all__ = ["Foundation", "configured_key", "open_foundation"]

_log = logging.getLogger(__name__)
_CORES: Final = os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Foundation:
    settings: Settings
    data: DataFolder
    database: Database
    clock: Clock
    audit: AuditRepository
    audit_key: AuditKey
    spool: SpoolFolder
    large_blobs: BlobStore
    catalog: BlobCatalog
    notifier: Notifier
    compute: ComputePool
    metrics: CollectorRegistry


@asynccontextmanager
async def open_foundation(
    settings: Settings, *, own: bool, create: bool, on_step: Callable[[str], None]
) -> AsyncIterator[Foundation]:
    """Migrated and ready; `own` and `create`: see `open_database`."""
    database_of = open_database(settings, own=own, create=create, on_step=on_step)
    async with database_of as database, AsyncExitStack() as stack:
        if applied := await migrate(database):
            versions = [migration.version for migration in applied]
            _log.info("migrated the database", extra={"first": versions[0], "last": versions[-1]})
        data = DataFolder(settings.data.absolute())
        audit_key = await _audit_key(settings, data, database)
        spool = SpoolFolder(data.blobs / "tmp")
        large = large_blob_store(settings, data, spool)
        notifier = Notifier(database)
        stack.push_async_callback(notifier.close)
        compute = ComputePool(workers=max(2, _CORES))
        stack.push_async_callback(compute.close)
        yield Foundation(
            settings=settings,
            data=data,
            database=database,
            clock=SystemClock(),
            audit=AuditRepository(audit_key),
            audit_key=audit_key,
            spool=spool,
            large_blobs=large,
            catalog=BlobCatalog(
                database=database,
                small=InlineBlobStore(database),
                large=large,
                limit=settings.storage.inline_limit_bytes,
                spool=spool,
            ),
            notifier=notifier,
            compute=compute,
            metrics=CollectorRegistry(),
        )


def configured_key(settings: Settings) -> AuditKey | None:
    return None if settings.audit.key is None else AuditKey(settings.audit.key.get_secret_value().encode())


async def _audit_key(settings: Settings, data: DataFolder, database: Database) -> AuditKey:
    """The operator's key, when several servers share a database; else one in the data folder."""
    if (configured := configured_key(settings)) is not None:
        return configured
    async with database.connection() as connection:
        if not data.key_file("audit").exists() and await has_begun(connection):
            raise Misconfigured(
                f"The database has an audit trail, but {data.key_file('audit')}, the key it is written with, is not "
                "there. Restore it, or set CONTEXTBASE_AUDIT_KEY as the other servers of this database have it. If it "
                "is lost for good, write 64 other hex digits there: fsck will then report every row until now."
            )
    return AuditKey(data.secret_key("audit"))
