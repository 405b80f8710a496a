"""What agents work in: workspaces, and the sandboxes on them."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass

from contextbase.bootstrap.core import CoreServices
from contextbase.bootstrap.files import file_service
from contextbase.bootstrap.foundation import Foundation
from contextbase.bootstrap.machines import machine_name
from contextbase.bootstrap.sandboxes import limits_of, sandbox_driver
from contextbase.bootstrap.sessions import session_access
from contextbase.bootstrap.tools import tool_service
from contextbase.commands.driver import MachineDriver
from contextbase.commands.occupancy import Occupancy
from contextbase.commands.repository import SandboxRepository
from contextbase.commands.sandboxes import AgentSandboxes
from contextbase.commands.service import CommandService
from contextbase.commands.upkeep import SandboxUpkeep
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.files.service import FileService
from contextbase.gate.long_merges import LongMerges
from contextbase.identity.repository import IdentityRepository
from contextbase.limits import ResourceLimits
from contextbase.machines.placement import Placement
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.tools.service import ToolService
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.admission import Admission
from contextbase.workspaces.agents import Agents
from contextbase.workspaces.checkpoints import Checkpoints
from contextbase.workspaces.creation import WorkspaceCreation
from contextbase.workspaces.diffs import WorkspaceDiffs
from contextbase.workspaces.ending import WorkspaceEnding
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import Owner, Quota
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.refresh.merges import RefreshMerges
from contextbase.workspaces.refresh.service import Refreshes
from contextbase.workspaces.repository import WorkspaceRepository
from contextbase.workspaces.sender import Sender
from contextbase.workspaces.service import WorkspaceService
from contextbase.workspaces.shared_views import SharedViews
from contextbase.workspaces.source import DatabaseSnapshots
from contextbase.workspaces.turns import WorkspaceTurns
from contextbase.workspaces.upkeep import WorkspaceUpkeep
from contextbase.workspaces.view_cache import ViewCache
from contextbase.workspaces.workspace_search import WorkspaceSearch

__all__ = ["AgentServices", "open_agent_services"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentServices:
    workspaces: WorkspaceService
    files: FileService
    tools: ToolService
    workspace_search: WorkspaceSearch
    shared_views: SharedViews
    workspace_upkeep: WorkspaceUpkeep
    sandboxes: AgentSandboxes
    sandbox_upkeep: SandboxUpkeep
    sandbox_limits: ResourceLimits
    runs: CommandService
    driving: MachineDriver


@asynccontextmanager
async def open_agent_services(
    foundation: Foundation, core: CoreServices, placement: Placement, *, is_machine: bool
) -> AsyncIterator[AgentServices]:
    """Without `is_machine` they answer what the database knows, and raise `HeldElsewhere` for the rest."""
    settings, data, database, gate = foundation.settings, foundation.data, foundation.database, core.gate
    catalog = foundation.catalog
    source = DatabaseSnapshots(database=database, catalog=catalog, spool=SpoolFolder(data.node / "tmp"))
    node = _node(settings, data, source, is_here=is_machine)
    registry, sight, repository = WorkspaceRepository(), ViewCache(WorkspaceRepository()), SandboxRepository()
    driving = MachineDriver(node.name, sandbox_driver(settings, node))
    occupancy = Occupancy(database=database, repository=repository, driving=driving)
    activity = Activity(database=database, audit=foundation.audit, clock=foundation.clock)
    sender = Sender(
        database=database,
        gate=gate,
        catalog=catalog,
        registry=registry,
        node=node,
        quota=_quota(settings),
    )
    checkpoints = Checkpoints(
        database=database,
        registry=registry,
        source=source,
        sender=sender,
        node=node,
        hint=foundation.notifier.hint_project,
    )
    admission = Admission(
        database=database,
        gate=gate,
        registry=registry,
        node=node,
        sight=sight,
        occupants=occupancy,
        placement=placement,
    )
    turns = WorkspaceTurns()
    workspaces = WorkspaceService(
        database=database,
        registry=registry,
        agents=Agents(database=database, repository=IdentityRepository(), sessions=session_access(foundation)),
        node=node,
        checkpoints=checkpoints,
        refreshes=Refreshes(
            database=database,
            gate=gate,
            registry=registry,
            source=source,
            sender=sender,
            node=node,
            merges=RefreshMerges(LongMerges(foundation.compute)),
        ),
        diffs=WorkspaceDiffs(node=node, source=source),
        admission=admission,
        activity=activity,
        creation=WorkspaceCreation(
            database=database,
            gate=gate,
            registry=registry,
            node=node,
            sight=sight,
            activity=activity,
            turns=turns,
        ),
        ending=WorkspaceEnding(
            database=database,
            registry=registry,
            node=node,
            checkpoints=checkpoints,
            admission=admission,
            occupants=occupancy,
            activity=activity,
        ),
        turns=turns,
    )
    views = SharedViews(database=database, gate=gate, sight=sight, node=node)
    files = file_service(foundation, core, workspaces, quota=_quota(settings))
    runs = CommandService(
        workspaces=workspaces,
        occupancy=occupancy,
        driving=driving,
        activity=activity,
        files=files,
        most=settings.sandbox.most_running,
    )
    search = WorkspaceSearch(workspaces=workspaces, search=core.search)
    services = AgentServices(
        workspaces=workspaces,
        files=files,
        tools=tool_service(core, workspaces, files, search),
        workspace_search=search,
        shared_views=views,
        workspace_upkeep=WorkspaceUpkeep(
            database=database,
            registry=registry,
            node=node,
            workspaces=workspaces,
            mirror_max_bytes=settings.machine.mirror_max_bytes,
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
            idle_seconds=settings.sandbox.idle_minutes * 60,
        ),
        sandbox_limits=limits_of(settings),
        runs=runs,
        driving=driving,
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(driving.close)
        stack.push_async_callback(runs.close)
        yield services


def _node(settings: Settings, data: DataFolder, source: SnapshotSource, *, is_here: bool) -> Machine:
    return Machine(
        machine_name(settings, data),
        data.node,
        source,
        owner=Owner.of_agents(settings.machine.agent_uid),
        wanted=None if settings.workspaces.provider == "auto" else settings.workspaces.provider,
        largest_file=settings.server.max_upload_bytes,
        quota=_quota(settings),
        is_here=is_here,
    )


def _quota(settings: Settings) -> Quota:
    return Quota(bytes=settings.workspaces.max_bytes, files=settings.workspaces.max_files)
