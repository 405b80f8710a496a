"""What agents work in: workspaces, and the sandboxes on them."""

from contextlib import AsyncExitStack
from dataclasses import dataclass

from contextbase.bootstrap.sandboxes import sandbox_driver
from contextbase.config import Settings
from contextbase.data_folder import DataFolder
from contextbase.db.database import Database
from contextbase.feed.notifier import Notifier
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate
from contextbase.identity.repository import IdentityRepository
from contextbase.runs.commands import CommandRuns
from contextbase.runs.driving import Driving
from contextbase.runs.occupancy import Occupancy
from contextbase.runs.repository import SandboxRepository
from contextbase.runs.sandboxes import AgentSandboxes
from contextbase.runs.upkeep import SandboxUpkeep
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.workspaces.admission import Admission
from contextbase.workspaces.agents import Agents
from contextbase.workspaces.checkpoints import Checkpoints
from contextbase.workspaces.comparing import WorkspaceDiffs
from contextbase.workspaces.model import Owner, Quota
from contextbase.workspaces.node import Node
from contextbase.workspaces.ports import SnapshotSource
from contextbase.workspaces.registry import Registry
from contextbase.workspaces.sending import Sender
from contextbase.workspaces.service import Workspaces
from contextbase.workspaces.shared_views import SharedViews
from contextbase.workspaces.sight import Sight
from contextbase.workspaces.source import DatabaseSnapshots
from contextbase.workspaces.upkeep import WorkspaceUpkeep

__all__ = ["AgentSide", "open_agent_side"]


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSide:
    workspaces: Workspaces
    shared_views: SharedViews
    workspace_upkeep: WorkspaceUpkeep
    sandboxes: AgentSandboxes
    sandbox_upkeep: SandboxUpkeep
    runs: CommandRuns


def open_agent_side(
    settings: Settings,
    data: DataFolder,
    database: Database,
    gate: Gate,
    *,
    catalog: BlobCatalog,
    notifier: Notifier,
    stack: AsyncExitStack,
) -> AgentSide:
    """What is to be closed goes on the stack."""
    source = DatabaseSnapshots(database=database, catalog=catalog, spool=SpoolFolder(data.node / "tmp"))
    node = _node(settings, data, source)
    registry, sight, repository = Registry(), Sight(Registry()), SandboxRepository()
    driving = Driving(node.name, sandbox_driver(settings, node))
    stack.push_async_callback(driving.close)
    occupancy = Occupancy(database=database, repository=repository, driving=driving)
    sender = Sender(
        database=database,
        gate=gate,
        catalog=catalog,
        repository=GateRepository(),
        registry=registry,
        node=node,
        quota=_quota(settings),
    )
    workspaces = Workspaces(
        database=database,
        gate=gate,
        registry=registry,
        agents=Agents(database=database, repository=IdentityRepository()),
        node=node,
        checkpoints=Checkpoints(
            database=database, registry=registry, source=source, sender=sender, node=node, hint=notifier.hint
        ),
        diffs=WorkspaceDiffs(node=node, source=source),
        sight=sight,
        admission=Admission(
            database=database, gate=gate, registry=registry, node=node, sight=sight, occupants=occupancy
        ),
        occupants=occupancy,
    )
    views = SharedViews(database=database, gate=gate, sight=sight, node=node)
    runs = CommandRuns(workspaces=workspaces, occupancy=occupancy, driving=driving, most=settings.sandbox_most_running)
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
            database=database, repository=repository, workspaces=workspaces, occupancy=occupancy, driving=driving
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


def _node(settings: Settings, data: DataFolder, source: SnapshotSource) -> Node:
    return Node(
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
