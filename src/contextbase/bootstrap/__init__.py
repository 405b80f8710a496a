"""The only place where a port meets its implementation. `open_services` puts the whole system together."""

import logging
import os
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final

from prometheus_client import CollectorRegistry

from contextbase.audit.chain import AuditKey
from contextbase.audit.repository import AuditRepository, has_begun
from contextbase.backup.create import BackupService
from contextbase.backup.restore import RestoreService
from contextbase.bootstrap.agents import open_agent_side
from contextbase.bootstrap.reviews import open_reviews
from contextbase.bootstrap.sandboxes import limits_of, sandbox_kind
from contextbase.commands.sandboxes import AgentSandboxes
from contextbase.commands.service import CommandService
from contextbase.commands.upkeep import SandboxUpkeep
from contextbase.compute.pool import ComputePool
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.embedded import EmbeddedPostgres, embedded_address
from contextbase.db.migrations.runner import all_migrations, migrate, pending_migrations
from contextbase.errors import Conflict, ContextbaseError, InvalidInput, InvalidSettings, Misconfigured
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.draft import Drafter
from contextbase.gate.large_contents import LargeContents
from contextbase.gate.leader import GroupCommit
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.metrics import GateMetrics
from contextbase.gate.policy_cache import PolicyCache
from contextbase.gate.repository import GateRepository
from contextbase.gate.retention import Housekeeping
from contextbase.gate.service import Gate
from contextbase.gate.turns import Turns
from contextbase.history.archives import Archives
from contextbase.history.blame import Blames
from contextbase.history.contents import ContentLoader
from contextbase.history.diffs import Diffs
from contextbase.history.previews import StateDiffs
from contextbase.history.purge import Purge
from contextbase.history.rollback import Rollback
from contextbase.history.snapshots import Snapshots
from contextbase.history.undo import Undo
from contextbase.identity.policies import PolicyService
from contextbase.identity.policy_repository import PolicyRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.ids import ContentHash, SystemClock
from contextbase.leases.repository import LeaseRepository
from contextbase.leases.service import LeaseService
from contextbase.leases.store import LeaseStore
from contextbase.limits import ResourceLimits
from contextbase.reads.audit_search import AuditSearch
from contextbase.reads.commit_log import CommitLog
from contextbase.reads.service import Reads
from contextbase.review.closer import ReviewCloser
from contextbase.review.service import ReviewService
from contextbase.review.upkeep import Upkeep
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.inline import InlineBlobStore
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.blobs.retry import RetryingBlobStore
from contextbase.storage.blobs.s3 import S3BlobStore
from contextbase.storage.blobs.s3_connection import S3Connection
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.collector import GarbageCollector
from contextbase.storage.fsck import Fsck
from contextbase.storage.head import HeadRepository
from contextbase.storage.projects import ProjectService
from contextbase.storage.tree import TreeRepository
from contextbase.storage.write_probe import WriteProbe
from contextbase.streams.access import ScopeAccess
from contextbase.streams.bodies import EventBodies
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import ScopeKind
from contextbase.streams.notifier import Notifier
from contextbase.streams.ports import NoSessions
from contextbase.streams.project_feed import ProjectFeed
from contextbase.streams.repository import StreamRepository
from contextbase.streams.service import StreamService
from contextbase.workspaces.service import WorkspaceService
from contextbase.workspaces.shared_views import SharedViews
from contextbase.workspaces.upkeep import WorkspaceUpkeep

__all__ = ["Services", "open_database", "open_restore", "open_services", "problems_outside", "sandbox_kind"]

_log = logging.getLogger(__name__)
_CORES: Final = os.cpu_count() or 1


@dataclass(frozen=True, kw_only=True, slots=True)
class Services:
    """What the interfaces call."""

    settings: Settings
    data: DataFolder
    database: Database
    metrics: CollectorRegistry
    large_blobs: BlobStore
    write_probe: WriteProbe
    catalog: BlobCatalog
    identity: IdentityService
    projects: ProjectService
    policies: PolicyService
    gate: Gate
    reads: Reads
    history: CommitLog
    trail: AuditSearch
    snapshots: Snapshots
    diffs: Diffs
    blames: Blames
    archives: Archives
    rollback: Rollback
    undo: Undo
    purge: Purge
    feed: ProjectFeed
    streams: StreamService
    scope_access: ScopeAccess
    reviews: ReviewService
    review_upkeep: Upkeep
    housekeeping: Housekeeping
    collector: GarbageCollector
    fsck: Fsck
    backups: BackupService
    leases: LeaseService
    workspaces: WorkspaceService
    shared_views: SharedViews
    workspace_upkeep: WorkspaceUpkeep
    sandboxes: AgentSandboxes
    sandbox_upkeep: SandboxUpkeep
    sandbox_limits: ResourceLimits
    runs: CommandService


@asynccontextmanager
async def open_database(
    settings: Settings, *, own: bool, create: bool = True, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Database]:
    """The external database, or the embedded one. Without `create` it must hold a contextbase: else `InvalidInput`,
    and nothing is made.

    With `own` the data folder is locked and the embedded PostgreSQL runs for as long as the block does: `Conflict` if
    another process has it. Without, a running server's is used, and only if there is none is it started for a while.
    """
    data = DataFolder(settings.data.absolute())
    async with AsyncExitStack() as stack:
        if create:
            data.create()
        else:
            _require_data(settings, data)
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
        if not create and len(await pending_migrations(database)) == len(all_migrations()):
            raise InvalidInput(
                "The database holds no contextbase. Check CONTEXTBASE_DATABASE_URL and --data; `contextbase up` starts "
                "a new one there."
            )
        yield database


@asynccontextmanager
async def open_services(
    settings: Settings, *, own: bool = False, create: bool = True, on_step: Callable[[str], None] = lambda _: None
) -> AsyncIterator[Services]:
    """Everything, migrated and ready; closed in reverse order when the block ends. `create`: see `open_database`."""
    database_of = open_database(settings, own=own, create=create, on_step=on_step)
    async with database_of as database, AsyncExitStack() as stack:
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
        bodies = EventBodies(catalog)
        head, gate_repository = HeadRepository(), GateRepository()
        notifier = Notifier(database)
        stack.push_async_callback(notifier.close)
        lease_wakes = Notifier(database, channel="contextbase_leases")
        stack.push_async_callback(lease_wakes.close)
        contents = ContentCache()
        # Of their own, so that no project's line waits for somebody's blame.
        gate_compute = ComputePool(workers=max(1, _CORES // 2), at_once=max(1, _CORES // 2))
        stack.push_async_callback(gate_compute.close)
        compute = ComputePool(workers=max(2, _CORES))
        stack.push_async_callback(compute.close)
        merges, large_contents = LongMerges(gate_compute), LargeContents(catalog)
        stack.push_async_callback(large_contents.close)
        policies = PolicyCache(gate_repository, contents)
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
                large=large_contents,
                merges=merges,
                contents=contents,
                leases=LeaseRepository(),
                clock=clock,
            ),
            metrics=GateMetrics(metrics),
            turns=Turns(database),
            hint=notifier.hint_project,
        )
        gate = Gate(
            database=database,
            repository=gate_repository,
            head=head,
            catalog=catalog,
            large=large_contents,
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
        shown = StateDiffs(database=database, contents=past, compute=compute)
        stack.push_async_callback(group_commit.close)
        desk = ReviewCloser(
            database=database,
            gate=gate,
            repository=gate_repository,
            audit=audit,
            clock=clock,
            hint=notifier.hint_project,
        )
        others_merges = LongMerges(compute)
        reviews, upkeep = open_reviews(
            settings, database, gate, desk, catalog, audit=audit, notifier=notifier, merges=others_merges
        )
        agents = open_agent_side(
            settings, data, database, gate, catalog=catalog, notifier=notifier, audit=audit, stack=stack
        )
        yield Services(
            settings=settings,
            data=data,
            database=database,
            metrics=metrics,
            large_blobs=large,
            write_probe=WriteProbe(database=database, blobs=large),
            catalog=catalog,
            identity=IdentityService(database=database, repository=IdentityRepository(), audit=audit, clock=clock),
            projects=projects,
            policies=PolicyService(database=database, repository=PolicyRepository(), audit=audit, clock=clock),
            gate=gate,
            reads=reads,
            history=CommitLog(database=database, gate=gate, reads=reads),
            trail=AuditSearch(database=database, gate=gate),
            snapshots=snapshots,
            diffs=Diffs(database=database, gate=gate, reads=reads, snapshots=snapshots, contents=past, compute=compute),
            blames=Blames(database=database, gate=gate, snapshots=snapshots, contents=past, compute=compute),
            archives=Archives(
                database=database, gate=gate, repository=gate_repository, snapshots=snapshots, catalog=catalog
            ),
            rollback=Rollback(database=database, gate=gate, reads=reads, snapshots=snapshots, diffs=shown),
            undo=Undo(database=database, gate=gate, contents=past, diffs=shown, merges=others_merges),
            purge=Purge(database=database, gate=gate, catalog=catalog, projects=projects, audit=audit, clock=clock),
            feed=ProjectFeed(database=database, repository=FeedRepository(), bodies=bodies, notifier=notifier),
            streams=StreamService(
                database=database,
                repository=StreamRepository(),
                bodies=bodies,
                notifier=notifier,
                retention={
                    ScopeKind.PROJECT: timedelta(days=settings.event_retention_days),
                    ScopeKind.USER: timedelta(days=settings.user_event_retention_days),
                    ScopeKind.SYSTEM: timedelta(days=settings.system_event_retention_days),
                },
            ),
            scope_access=ScopeAccess(sessions=NoSessions()),
            reviews=reviews,
            review_upkeep=upkeep,
            housekeeping=Housekeeping(database=database, clock=clock),
            collector=GarbageCollector(database=database, store=catalog.store, spool=spool, clock=clock),
            fsck=Fsck(database=database, store=catalog.store, audit=audit),
            backups=BackupService(database=database, large_blobs=large, audit_key=audit_key, clock=clock),
            leases=LeaseService(
                database=database,
                gate=gate,
                books=LeaseStore(
                    database=database, repository=LeaseRepository(), wakes=lease_wakes, hint=notifier.hint_project
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
    data = DataFolder(settings.data.absolute())
    data.refuse_foreign()
    async with open_database(settings, own=True, on_step=on_step) as database:
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


def _require_data(settings: Settings, data: DataFolder) -> None:
    """What the settings keep in the data folder is there. Whether an external database is ours, it says itself."""
    if settings.database_url is None:
        is_there = data.holds_database()
    else:
        is_there = settings.blob_location.bucket is not None or data.path.is_dir()
    if not is_there:
        raise InvalidInput(
            f"There is no contextbase in {data.path}. Name its data folder with --data or CONTEXTBASE_DATA; "
            "`contextbase up` starts a new one."
        )


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
