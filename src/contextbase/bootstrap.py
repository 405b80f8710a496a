"""The only place where a port meets its implementation. `open_services` puts the whole system together."""

import logging
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.embedded import EmbeddedPostgres, embedded_address
from contextbase.db.migrations.runner import migrate
from contextbase.errors import Conflict, InvalidSettings
from contextbase.feed.notifier import Notifier
from contextbase.feed.repository import FeedRepository
from contextbase.feed.service import FeedService
from contextbase.gate.leader import GroupCommit
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import SystemClock
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.retrying import RetryingBlobStore
from contextbase.storage.blobs.s3 import S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.collector import GarbageCollector
from contextbase.storage.fsck import Fsck
from contextbase.storage.head import HeadRepository
from contextbase.storage.projects import ProjectService

__all__ = ["Services", "open_database", "open_services"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """What the interfaces call."""

    settings: Settings
    data: DataFolder
    database: Database
    large_blobs: BlobStore
    catalog: BlobCatalog
    identity: IdentityService
    projects: ProjectService
    gate: Gate
    feed: FeedService
    collector: GarbageCollector
    fsck: Fsck


@asynccontextmanager
async def open_database(
    settings: Settings, *, own: bool, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Database]:
    """The external database, or the embedded one.

    With `own` the data folder is locked and the embedded PostgreSQL runs for as long as the block does: `Conflict` if
    another process has it. Without, a running server's is used, and only if there is none is it started for a while.
    """
    data = DataFolder(settings.data.absolute())
    async with AsyncExitStack() as stack:
        data.create()
        url = settings.database_url
        if own or url is None:
            try:
                stack.enter_context(data.lock())
                owned = True
            except Conflict:
                if own:
                    raise
                owned = False
        if url is not None:
            address = DatabaseAddress(url=url.get_secret_value())
        elif owned:
            embedded = EmbeddedPostgres(data.postgres)
            stack.push_async_callback(embedded.stop)
            await embedded.start(on_step)
            address = embedded.address
        else:
            address = embedded_address(data.postgres)
        database = await Database.connect(
            address,
            pool_size=settings.database_pool_size,
            statement_timeout_seconds=settings.database_timeout_seconds,
        )
        stack.push_async_callback(database.close)
        yield database


@asynccontextmanager
async def open_services(
    settings: Settings, *, own: bool = False, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Services]:
    """Everything, migrated and ready; closed in reverse order when the block ends."""
    async with open_database(settings, own=own, on_step=on_step) as database:
        for migration in await migrate(database):
            _log.info("applied migration", extra={"version": migration.version, "migration": migration.name})
        data = DataFolder(settings.data.absolute())
        clock = SystemClock()
        audit = AuditRepository(_audit_key(settings, data))
        spool = SpoolFolder(data.blobs / "tmp")
        large = _large_blobs(settings, data, spool)
        catalog = BlobCatalog(
            database=database,
            small=InlineBlobStore(database),
            large=large,
            limit=settings.inline_limit_bytes,
            spool=spool,
        )
        notifier = Notifier(database)
        repository, head = GateRepository(), HeadRepository()
        group_commit = GroupCommit(
            database=database,
            repository=repository,
            head=head,
            audit=audit,
            catalog=catalog,
            clock=clock,
            hint=notifier.hint,
        )
        try:
            yield Services(
                settings=settings,
                data=data,
                database=database,
                large_blobs=large,
                catalog=catalog,
                identity=IdentityService(database=database, repository=IdentityRepository(), audit=audit, clock=clock),
                projects=ProjectService(database=database, audit=audit, clock=clock),
                gate=Gate(
                    database=database, repository=repository, head=head, catalog=catalog, group_commit=group_commit
                ),
                feed=FeedService(
                    database=database,
                    repository=FeedRepository(),
                    notifier=notifier,
                    retention=timedelta(days=settings.event_retention_days),
                ),
                collector=GarbageCollector(database=database, store=catalog.store, spool=spool, clock=clock),
                fsck=Fsck(database=database, store=catalog.store, audit=audit),
            )
        finally:
            await group_commit.close()
            await notifier.close()


def _large_blobs(settings: Settings, data: DataFolder, spool: SpoolFolder) -> BlobStore:
    location = settings.blob_location
    if location.bucket is None:
        return LocalBlobStore(data.blobs)
    if settings.s3_access_key_id is None or settings.s3_secret_access_key is None:
        raise InvalidSettings(
            "Blobs are to go to S3, but the keys are not set: CONTEXTBASE_S3_ACCESS_KEY_ID and "
            "CONTEXTBASE_S3_SECRET_ACCESS_KEY."
        )
    endpoint = settings.s3_endpoint or ""
    connection = S3Connection(
        bucket=location.bucket,
        prefix=location.prefix,
        endpoint=endpoint,
        region=settings.s3_region,
        access_key_id=settings.s3_access_key_id,
        secret_access_key=settings.s3_secret_access_key.get_secret_value(),
        allow_http=endpoint.startswith("http://"),
    )
    return RetryingBlobStore(S3BlobStore(connection, spool=spool), spool=spool)


def _audit_key(settings: Settings, data: DataFolder) -> AuditKey:
    """The operator's key, when several servers share a database; else one in the data folder."""
    if settings.audit_key is not None:
        return AuditKey(settings.audit_key.get_secret_value().encode())
    return AuditKey(data.secret_key("audit"))
