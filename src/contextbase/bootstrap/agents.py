"""What agents work in: workspaces, and the sandboxes on them."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from contextbase.audit.repository import AuditRepository
from contextbase.bootstrap.sandboxes import sandbox_driver
from contextbase.commands.driver import MachineDriver
from contextbase.commands.occupancy import Occupancy
from contextbase.commands.repository import SandboxRepository
from contextbase.commands.sandboxes import AgentSandboxes
from contextbase.commands.service import CommandService
from contextbase.commands.upkeep import SandboxUpkeep
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import SystemClock
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.streams.notifier import Notifier
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.admission import Admission
from contextbase.workspaces.agents import Agents
from contextbase.workspaces.checkpoints import Checkpoints
from contextbase.workspaces.diffs import WorkspaceDiffs
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import Owner, Quota
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.repository import WorkspaceRepository
from contextbase.workspaces.sender import Sender
from contextbase.workspaces.service import WorkspaceService
from contextbase.workspaces.shared_views import SharedViews
from contextbase.workspaces.source import DatabaseSnapshots
from contextbase.workspaces.upkeep import WorkspaceUpkeep
from contextbase.workspaces.view_cache import ViewCache

__all__ = ["AgentSide", "open_agent_side"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSide:
    workspaces: WorkspaceService
    shared_views: SharedViews
    workspace_upkeep: WorkspaceUpkeep
    sandboxes: AgentSandboxes
    sandbox_upkeep: SandboxUpkeep
    runs: CommandService


def open_agent_side(
    settings: Settings,
    data: DataFolder,
    database: Database,
    gate: Gate,
    *,
    catalog: BlobCatalog,
    notifier: Notifier,
    audit: AuditRepository,
    stack: AsyncExitStack,
) -> AgentSide:
    """What is to be closed goes on the stack."""
    source = DatabaseSnapshots(database=database, catalog=catalog, spool=SpoolFolder(data.node / "tmp"))
    node = _node(settings, data, source)
    registry, sight, repository = WorkspaceRepository(), ViewCache(WorkspaceRepository()), SandboxRepository()
    driving = MachineDriver(node.name, sandbox_driver(settings, node))
    stack.push_async_callback(driving.close)
    occupancy = Occupancy(database=database, repository=repository, driving=driving)
    activity = Activity(database=database, audit=audit, clock=SystemClock())
    sender = Sender(
        database=database,
        gate=gate,
        catalog=catalog,
        repository=GateRepository(),
        registry=registry,
        node=node,
        quota=_quota(settings),
    )
    workspaces = WorkspaceService(
        database=database,
        gate=gate,
        registry=registry,
        agents=Agents(database=database, repository=IdentityRepository()),
        node=node,
        checkpoints=Checkpoints(
            database=database, registry=registry, source=source, sender=sender, node=node, hint=notifier.hint_project
        ),
        diffs=WorkspaceDiffs(node=node, source=source),
        sight=sight,
        admission=Admission(
            database=database, gate=gate, registry=registry, node=node, sight=sight, occupants=occupancy
        ),
        occupants=occupancy,
        activity=activity,
    )
    views = SharedViews(database=database, gate=gate, sight=sight, node=node)
    runs = CommandService(
        workspaces=workspaces,
        occupancy=occupancy,
        driving=driving,
        activity=activity,
        most=settings.sandbox_most_running,
    )
    stack.push_async_callback(runs.close)
    return AgentSide(
        workspaces=workspaces,
        shared_views=views,
        workspace_upkeep=WorkspaceUpkeep(
            database=database,
            registry=registry,
            node=node,
            workspaces=workspaces,
            views=views,
            mirror_max_bytes=settings.mirror_max_bytes,
        ),
        sandboxes=AgentSandboxes(
            database=database,
            repository=repository,
            workspaces=workspaces,
            occupancy=occupancy,
            driving=driving,
            activity=activity,
        ),
        sandbox_upkeep=SandboxUpkeep(
            database=database,
            repository=repository,
            occupancy=occupancy,
            driving=driving,
            idle_seconds=settings.sandbox_idle_minutes * 60,
        ),
        runs=runs,
    )


def _node(settings: Settings, data: DataFolder, source: SnapshotSource) -> Machine:
    return Machine(
        settings.node_name or data.node_name(),
        data.node,
        source,
        owner=Owner.of_agents(settings.agent_uid),
        wanted=None if settings.workspace_provider == "auto" else settings.workspace_provider,
        largest_file=settings.max_upload_bytes,
        quota=_quota(settings),
    )


def _quota(settings: Settings) -> Quota:
    return Quota(bytes=settings.workspace_max_bytes, files=settings.workspace_max_files)
