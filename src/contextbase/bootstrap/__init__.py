"""The only place where a port meets its implementation. `open_services` puts the whole system together."""

import logging
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from prometheus_client import CollectorRegistry

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository, has_begun
from contextbase.backup.create import BackupService
from contextbase.backup.restore import RestoreService
from contextbase.bootstrap.agents import open_agent_side
from contextbase.bootstrap.reviews import open_reviews
from contextbase.bootstrap.sandboxes import limits_of, sandbox_kind
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.embedded import EmbeddedPostgres, embedded_address
from contextbase.db.migrations.runner import migrate
from contextbase.errors import Conflict, ContextbaseError, InvalidSettings, Misconfigured
from contextbase.feed.notifier import Notifier
from contextbase.feed.repository import FeedRepository
from contextbase.feed.service import FeedService
from contextbase.gate.cache import ContentCache, PolicyBook
from contextbase.gate.draft import Drafter
from contextbase.gate.history import History
from contextbase.gate.housekeeping import Housekeeping
from contextbase.gate.leader import GroupCommit
from contextbase.gate.metrics import GateMetrics
from contextbase.gate.reads import Reads
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate
from contextbase.gate.trail import Trail
from contextbase.gate.turns import Turns
from contextbase.history.archives import Archives
from contextbase.history.blame import Blames
from contextbase.history.contents import ContentLoader
from contextbase.history.diffs import Diffs
from contextbase.history.purge import Purge
from contextbase.history.rollback import Rollback
from contextbase.history.showing import StateDiffs
from contextbase.history.snapshots import Snapshots
from contextbase.history.undo import Undo
from contextbase.identity.policies import PolicyService
from contextbase.identity.policy_repository import PolicyRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import ContentHash, SystemClock
from contextbase.leases.books import LeaseBooks
from contextbase.leases.repository import LeaseRepository
from contextbase.leases.service import LeaseService
from contextbase.limits import ResourceLimits
from contextbase.review.desk import Desk
from contextbase.review.service import Reviews
from contextbase.review.upkeep import Upkeep
from contextbase.runs.commands import CommandRuns
from contextbase.runs.sandboxes import AgentSandboxes
from contextbase.runs.upkeep import SandboxUpkeep
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
from contextbase.storage.tree import TreeRepository
from contextbase.workspaces.service import Workspaces
from contextbase.workspaces.shared_views import SharedViews
from contextbase.workspaces.upkeep import WorkspaceUpkeep

__all__ = ["Services", "open_database", "open_restore", "open_services", "problems_outside", "sandbox_kind"]

_log = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """What the interfaces call."""

    settings: Settings
    data: DataFolder
    database: Database
    metrics: CollectorRegistry
    large_blobs: BlobStore
    catalog: BlobCatalog
    identity: IdentityService
    projects: ProjectService
    policies: PolicyService
    gate: Gate
    reads: Reads
    history: History
    trail: Trail
    snapshots: Snapshots
    diffs: Diffs
    blames: Blames
    archives: Archives
    rollback: Rollback
    undo: Undo
    purge: Purge
    feed: FeedService
    reviews: Reviews
    review_upkeep: Upkeep
    housekeeping: Housekeeping
    collector: GarbageCollector
    fsck: Fsck
    backups: BackupService
    leases: LeaseService
    workspaces: Workspaces
    shared_views: SharedViews
    workspace_upkeep: WorkspaceUpkeep
    sandboxes: AgentSandboxes
    sandbox_upkeep: SandboxUpkeep
    sandbox_limits: ResourceLimits
    runs: CommandRuns


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
    async with open_database(settings, own=own, on_step=on_step) as database, AsyncExitStack() as stack:
        for migration in await migrate(database):
            _log.info("applied migration", extra={"version": migration.version, "migration": migration.name})
        data = DataFolder(settings.data.absolute())
        clock = SystemClock()
        audit_key = await _audit_key(settings, data, database)
        audit = AuditRepository(audit_key)
        spool = SpoolFolder(data.blobs / "tmp")
        large = _large_blobs(settings, data, spool)
        catalog = BlobCatalog(
            database=database,
            small=InlineBlobStore(database),
            large=large,
            limit=settings.inline_limit_bytes,
            spool=spool,
        )
        head, gate_repository = HeadRepository(), GateRepository()
        notifier = Notifier(database)
        stack.push_async_callback(notifier.close)
        lease_wakes = Notifier(database, channel="contextbase_leases")
        stack.push_async_callback(lease_wakes.close)
        contents = ContentCache()
        policies = PolicyBook(gate_repository, contents)
        metrics = CollectorRegistry()
        group_commit = GroupCommit(
            database=database.writers,
            repository=gate_repository,
            head=head,
            audit=audit,
            catalog=catalog,
            drafter=Drafter(
                repository=gate_repository,
                policies=policies,
                catalog=catalog,
                contents=contents,
                leases=LeaseRepository(),
                clock=clock,
            ),
            metrics=GateMetrics(metrics),
            turns=Turns(database),
            hint=notifier.hint,
        )
        gate = Gate(
            database=database,
            repository=gate_repository,
            head=head,
            catalog=catalog,
            policies=policies,
            group_commit=group_commit,
        )
        reads = Reads(
            database=database,
            gate=gate,
            repository=gate_repository,
            tree=TreeRepository(),
            catalog=catalog,
            contents=contents,
        )
        projects = ProjectService(database=database, audit=audit, clock=clock)
        snapshots = Snapshots(database=database, gate=gate, audit=audit, clock=clock)
        past = ContentLoader(repository=gate_repository, catalog=catalog, cache=contents)
        shown = StateDiffs(database=database, contents=past)
        stack.push_async_callback(group_commit.close)
        desk = Desk(
            database=database, gate=gate, repository=gate_repository, audit=audit, clock=clock, hint=notifier.hint
        )
        reviews, upkeep = open_reviews(settings, database, gate, desk, catalog, audit=audit, notifier=notifier)
        agents = open_agent_side(settings, data, database, gate, catalog=catalog, notifier=notifier, stack=stack)
        yield Services(
            settings=settings,
            data=data,
            database=database,
            metrics=metrics,
            large_blobs=large,
            catalog=catalog,
            identity=IdentityService(database=database, repository=IdentityRepository(), audit=audit, clock=clock),
            projects=projects,
            policies=PolicyService(database=database, repository=PolicyRepository(), audit=audit, clock=clock),
            gate=gate,
            reads=reads,
            history=History(database=database, gate=gate, reads=reads),
            trail=Trail(database=database, gate=gate),
            snapshots=snapshots,
            diffs=Diffs(database=database, gate=gate, reads=reads, snapshots=snapshots, contents=past),
            blames=Blames(database=database, gate=gate, snapshots=snapshots, contents=past),
            archives=Archives(
                database=database, gate=gate, repository=gate_repository, snapshots=snapshots, catalog=catalog
            ),
            rollback=Rollback(database=database, gate=gate, reads=reads, snapshots=snapshots, diffs=shown),
            undo=Undo(database=database, gate=gate, contents=past, diffs=shown),
            purge=Purge(database=database, gate=gate, catalog=catalog, projects=projects, audit=audit, clock=clock),
            feed=FeedService(
                database=database,
                repository=FeedRepository(),
                notifier=notifier,
                retention=timedelta(days=settings.event_retention_days),
            ),
            reviews=reviews,
            review_upkeep=upkeep,
            housekeeping=Housekeeping(database=database, clock=clock),
            collector=GarbageCollector(database=database, store=catalog.store, spool=spool, clock=clock),
            fsck=Fsck(database=database, store=catalog.store, audit=audit),
            backups=BackupService(database=database, large_blobs=large, audit_key=audit_key, clock=clock),
            leases=LeaseService(
                database=database,
                gate=gate,
                books=LeaseBooks(
                    database=database, repository=LeaseRepository(), wakes=lease_wakes, hint=notifier.hint
                ),
                audit=audit,
                clock=clock,
                ttl=timedelta(seconds=settings.lease_ttl_seconds),
            ),
            workspaces=agents.workspaces,
            shared_views=agents.shared_views,
            workspace_upkeep=agents.workspace_upkeep,
            sandboxes=agents.sandboxes,
            sandbox_upkeep=agents.sandbox_upkeep,
            sandbox_limits=limits_of(settings),
            runs=agents.runs,
        )


@asynccontextmanager
async def open_restore(
    settings: Settings, *, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[RestoreService]:
    """What brings a backup back. The data folder is ours meanwhile: no server starts on half of it."""
    async with open_database(settings, own=True, on_step=on_step) as database:
        data = DataFolder(settings.data.absolute())
        yield RestoreService(
            database=database,
            large_blobs=_large_blobs(settings, data, SpoolFolder(data.blobs / "tmp")),
            data=data,
            configured_key=_configured_key(settings),
            clock=SystemClock(),
        )


async def problems_outside(settings: Settings) -> dict[str, str]:
    """What is wrong with the database and the bucket that are not ours, by asking them: a sentence for each."""
    problems = {}
    if settings.database_url is not None:
        try:
            database = await Database.connect(DatabaseAddress(url=settings.database_url.get_secret_value()))
            await database.close()
        except ContextbaseError as error:
            problems["database"] = error.message
    keys = (settings.s3_access_key_id, settings.s3_secret_access_key)
    if settings.blob_location.bucket is not None and None not in keys:
        try:
            with tempfile.TemporaryDirectory() as folder:
                await _bucket(settings, SpoolFolder(Path(folder))).exists(ContentHash.of(b""))
        except ContextbaseError as error:
            problems["s3"] = error.message
    return problems


def _large_blobs(settings: Settings, data: DataFolder, spool: SpoolFolder) -> BlobStore:
    if settings.blob_location.bucket is None:
        return LocalBlobStore(data.blobs)
    return RetryingBlobStore(_bucket(settings, spool), spool=spool)


def _bucket(settings: Settings, spool: SpoolFolder) -> S3BlobStore:
    if settings.s3_access_key_id is None or settings.s3_secret_access_key is None:
        raise InvalidSettings(
            "Blobs are to go to S3, but the keys are not set: CONTEXTBASE_S3_ACCESS_KEY_ID and "
            "CONTEXTBASE_S3_SECRET_ACCESS_KEY."
        )
    endpoint = settings.s3_endpoint or ""
    connection = S3Connection(
        bucket=settings.blob_location.bucket or "",
        prefix=settings.blob_location.prefix,
        endpoint=endpoint,
        region=settings.s3_region,
        access_key_id=settings.s3_access_key_id,
        secret_access_key=settings.s3_secret_access_key.get_secret_value(),
        allow_http=endpoint.startswith("http://"),
    )
    return S3BlobStore(connection, spool=spool)


async def _audit_key(settings: Settings, data: DataFolder, database: Database) -> AuditKey:
    """The operator's key, when several servers share a database; else one in the data folder."""
    if (configured := _configured_key(settings)) is not None:
        return configured
    async with database.connection() as connection:
        if not data.key_file("audit").exists() and await has_begun(connection):
            raise Misconfigured(
                f"The database has an audit trail, but {data.key_file('audit')}, the key it is written with, is not "
                "there. Restore it, or set CONTEXTBASE_AUDIT_KEY as the other servers of this database have it. If it "
                "is lost for good, write 64 other hex digits there: fsck will then report every row until now."
            )
    return AuditKey(data.secret_key("audit"))


def _configured_key(settings: Settings) -> AuditKey | None:
    return None if settings.audit_key is None else AuditKey(settings.audit_key.get_secret_value().encode())
