"""The core: what a server can do without agents' folders and sandboxes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager, closing
from dataclasses import dataclass
from datetime import timedelta

from prometheus_client import CollectorRegistry

from contextbase.backup.create import BackupService
from contextbase.bootstrap.catalog import CatalogServices, catalog_of
from contextbase.bootstrap.foundation import Foundation
from contextbase.bootstrap.gate import WriteDoor, open_gate
from contextbase.bootstrap.machines import machine_service
from contextbase.bootstrap.people import PeopleServices, people_of
from contextbase.bootstrap.reviews import reviews_of
from contextbase.bootstrap.search import open_search
from contextbase.bootstrap.sessions import SessionServices, session_access, sessions_of
from contextbase.chores import ChoreService
from contextbase.chores.repository import ChoreRepository
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database
from contextbase.gate.long_merges import LongMerges
from contextbase.gate.retention import Housekeeping
from contextbase.gate.service import Gate
from contextbase.history.archives import Archives
from contextbase.history.blame import Blames
from contextbase.history.contents import ContentLoader
from contextbase.history.diffs import Diffs
from contextbase.history.previews import StateDiffs
from contextbase.history.purge import Purge
from contextbase.history.rollback import Rollback
from contextbase.history.snapshots import Snapshots
from contextbase.history.undo import Undo
from contextbase.identity.logins.hashing import PasswordHashing
from contextbase.identity.policies import PolicyService
from contextbase.identity.policy_repository import PolicyRepository
from contextbase.identity.repository import IdentityRepository
from contextbase.identity.service import IdentityService
from contextbase.leases.repository import LeaseRepository
from contextbase.leases.service import LeaseService
from contextbase.leases.store import LeaseStore
from contextbase.machines.service import MachineService
from contextbase.reads.audit_search import AuditSearch
from contextbase.reads.commit_log import CommitLog
from contextbase.reads.service import Reads
from contextbase.review.service import ReviewService
from contextbase.review.upkeep import Upkeep
from contextbase.search.indexer import SearchIndexer
from contextbase.search.service import SearchService
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.ports import BlobStore
from contextbase.storage.collector import GarbageCollector
from contextbase.storage.fsck import Fsck
from contextbase.storage.projects import ProjectService
from contextbase.storage.tree import TreeRepository
from contextbase.storage.write_probe import WriteProbe
from contextbase.streams.access import ScopeAccess
from contextbase.streams.bodies import EventBodies
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import ScopeKind
from contextbase.streams.notifier import Notifier
from contextbase.streams.project_feed import ProjectFeed
from contextbase.streams.repository import StreamRepository
from contextbase.streams.service import StreamService
from contextbase.workspaces.readers import WorkspaceReaders
from contextbase.workspaces.repository import WorkspaceRepository

__all__ = ["CoreServices", "open_core_services"]


@dataclass(frozen=True, kw_only=True, slots=True)
class CoreServices:
    settings: Settings
    data: DataFolder
    database: Database
    metrics: CollectorRegistry
    large_blobs: BlobStore
    write_probe: WriteProbe
    catalog: BlobCatalog
    identity: IdentityService
    people: PeopleServices
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
    search: SearchService
    search_indexer: SearchIndexer
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
    chores: ChoreService
    sessions: SessionServices
    apps: CatalogServices
    machines: MachineService


@asynccontextmanager
async def open_core_services(foundation: Foundation) -> AsyncIterator[CoreServices]:
    settings, database, audit = foundation.settings, foundation.database, foundation.audit
    clock, catalog, compute = foundation.clock, foundation.catalog, foundation.compute
    async with (
        open_gate(foundation) as door,
        _opened_leases(foundation) as lease_store,
        open_search(foundation, reads := _reads(foundation, door), door.repository) as search,
        _opened_hashing() as hashing,
    ):
        gate, merges = door.gate, LongMerges(compute)
        projects = ProjectService(database=database, audit=audit, clock=clock)
        snapshots = Snapshots(database=database, gate=gate, audit=audit, clock=clock)
        past = ContentLoader(repository=door.repository, catalog=catalog, cache=door.contents)
        shown = StateDiffs(database=database, contents=past, compute=compute)
        reviews, review_upkeep = reviews_of(foundation, door, merges=merges)
        bodies = EventBodies(catalog)
        streams = StreamService(
            database=database,
            repository=StreamRepository(),
            bodies=bodies,
            notifier=foundation.notifier,
            retention=_retention(settings),
        )
        access, apps = session_access(foundation), catalog_of(foundation, projects)
        sessions = sessions_of(foundation, access, streams, apps, gate)
        identity = IdentityService(database=database, repository=IdentityRepository(), audit=audit, clock=clock)
        yield CoreServices(
            settings=settings,
            data=foundation.data,
            database=database,
            metrics=foundation.metrics,
            large_blobs=foundation.large_blobs,
            write_probe=WriteProbe(database=database, blobs=foundation.large_blobs),
            catalog=catalog,
            identity=identity,
            people=people_of(foundation, identity, sessions.narrowing, hashing),
            projects=projects,
            policies=PolicyService(
                database=database,
                repository=PolicyRepository(),
                accounts=IdentityRepository(),
                audit=audit,
                clock=clock,
            ),
            gate=gate,
            reads=reads,
            history=CommitLog(database=database, gate=gate, reads=reads),
            trail=AuditSearch(database=database, gate=gate),
            snapshots=snapshots,
            diffs=Diffs(database=database, gate=gate, reads=reads, snapshots=snapshots, contents=past, compute=compute),
            blames=Blames(database=database, gate=gate, snapshots=snapshots, contents=past, compute=compute),
            archives=Archives(
                database=database, gate=gate, repository=door.repository, snapshots=snapshots, catalog=catalog
            ),
            rollback=Rollback(database=database, gate=gate, reads=reads, snapshots=snapshots, diffs=shown),
            undo=Undo(database=database, gate=gate, contents=past, diffs=shown, merges=merges),
            purge=Purge(
                database=database,
                gate=gate,
                catalog=catalog,
                projects=projects,
                audit=audit,
                clock=clock,
                derived=search.indexer,
            ),
            search=search.service,
            search_indexer=search.indexer,
            feed=ProjectFeed(
                database=database, repository=FeedRepository(), bodies=bodies, notifier=foundation.notifier
            ),
            streams=streams,
            scope_access=ScopeAccess(
                sessions=access,
                workspaces=WorkspaceReaders(database=database, registry=WorkspaceRepository()),
            ),
            reviews=reviews,
            review_upkeep=review_upkeep,
            housekeeping=Housekeeping(database=database, clock=clock),
            collector=GarbageCollector(database=database, store=catalog.store, spool=foundation.spool, clock=clock),
            fsck=Fsck(database=database, store=catalog.store, audit=audit),
            backups=BackupService(
                database=database, large_blobs=foundation.large_blobs, audit_key=foundation.audit_key, clock=clock
            ),
            apps=apps,
            sessions=sessions,
            chores=ChoreService(database=database, repository=ChoreRepository()),
            machines=machine_service(foundation),
            leases=LeaseService(
                database=database,
                gate=gate,
                books=lease_store,
                audit=audit,
                clock=clock,
                ttl=timedelta(seconds=settings.leases.ttl_seconds),
            ),
        )


def _reads(foundation: Foundation, door: WriteDoor) -> Reads:
    return Reads(
        database=foundation.database,
        gate=door.gate,
        repository=door.repository,
        tree=TreeRepository(),
        catalog=foundation.catalog,
        contents=door.contents,
    )


@asynccontextmanager
async def _opened_leases(foundation: Foundation) -> AsyncIterator[LeaseStore]:
    async with AsyncExitStack() as stack:
        wakes = Notifier(foundation.database, channel="contextbase_leases")
        stack.push_async_callback(wakes.close)
        yield LeaseStore(
            database=foundation.database,
            repository=LeaseRepository(),
            wakes=wakes,
            hint=foundation.notifier.hint_project,
        )


@asynccontextmanager
async def _opened_hashing() -> AsyncIterator[PasswordHashing]:
    with closing(PasswordHashing()) as hashing:
        yield hashing


def _retention(settings: Settings) -> dict[ScopeKind, timedelta]:
    return {
        ScopeKind.PROJECT: timedelta(days=settings.retention.event_retention_days),
        ScopeKind.WORKSPACE: timedelta(days=settings.retention.event_retention_days),
        ScopeKind.USER: timedelta(days=settings.retention.user_event_retention_days),
        ScopeKind.SYSTEM: timedelta(days=settings.retention.system_event_retention_days),
    }
