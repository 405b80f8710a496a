"""What a machine does for sessions: it works on their runs, and looks after their folders and sandboxes."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta

from contextbase.agents.registry import adapters
from contextbase.bootstrap.agents import AgentServices
from contextbase.bootstrap.core import CoreServices
from contextbase.bootstrap.foundation import Foundation
from contextbase.bootstrap.models import ModelServices
from contextbase.catalog.app_session_repository import AppSessionRepository
from contextbase.catalog.repository import AppRepository
from contextbase.gate.long_merges import LongMerges
from contextbase.sessions.agent_programs import AgentPrograms
from contextbase.sessions.app_folder import AppFolders
from contextbase.sessions.container_files import ContainerFiles
from contextbase.sessions.earlier_turns import EarlierTurns
from contextbase.sessions.environment_setup import EnvironmentSetup
from contextbase.sessions.landing import RunLanding
from contextbase.sessions.machine_runs import MachineRuns
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.rewind import SessionRewinds
from contextbase.sessions.run_questions import RunQuestions
from contextbase.sessions.run_work import RunLimits, RunParts
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.sessions.snapshots import SessionSnapshots
from contextbase.sessions.state_files import StateRules
from contextbase.sessions.sync_alerts import SyncAlerts
from contextbase.sessions.terminals import SessionTerminals
from contextbase.sessions.user_files import UserFiles
from contextbase.sessions.waiting_work import WaitingWork
from contextbase.sessions.ways_out import RunsAtWork, SessionWaysOut
from contextbase.sessions.worker_host import WorkerHost
from contextbase.sessions.worker_retirement import WorkerRetirement
from contextbase.sessions.worker_rows import WorkerRows
from contextbase.sessions.worker_upkeep import WorkerUpkeep
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.workspaces.repository import WorkspaceRepository
from contextbase.workspaces.source import DatabaseSnapshots

__all__ = ["WorkerServices", "open_worker_services", "session_rewinds", "session_terminals", "waiting_work"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerServices:
    runs: MachineRuns
    host: WorkerHost
    upkeep: WorkerUpkeep
    programs: AgentPrograms


@asynccontextmanager
async def open_worker_services(
    foundation: Foundation, core: CoreServices, agents: AgentServices, models: ModelServices
) -> AsyncIterator[WorkerServices]:
    settings, database, workspaces = foundation.settings.agents, foundation.database, agents.workspaces
    repository, registry, at_work = SessionRepository(), WorkspaceRepository(), RunsAtWork()
    programs = core.sessions.agents.programs
    snapshots = SessionSnapshots(
        database=database,
        gate=core.gate,
        catalog=foundation.catalog,
        repository=SnapshotRepository(),
        registry=registry,
        workspaces=workspaces,
        rules=StateRules.of_agents(adapter.paths for adapter in adapters()),
    )
    clock, app_folders = foundation.clock, _app_folders(foundation, core, agents)
    rows = WorkerRows(
        database=database,
        repository=repository,
        app_folders=app_folders,
        alerts=SyncAlerts(database=database, repository=repository, streams=core.streams),
        clock=clock,
        machine=agents.sandboxes.driving.node,
    )
    host = WorkerHost(
        database=database,
        rows=rows,
        workspaces=workspaces,
        registry=registry,
        sandboxes=agents.sandboxes,
        occupancy=agents.sandboxes.occupancy,
        driving=agents.sandboxes.driving,
        snapshots=snapshots,
        programs=programs,
        limits=agents.sandbox_limits,
        ways_out=SessionWaysOut(
            at_work=at_work,
            runs=core.sessions.runs,
            gateway=models.gateway,
            proxy=models.egress_proxy,
            remote_mcp=models.remote_mcp,
            apps=models.stream_apps,
        ).handlers,
        clock=clock,
        homes=foundation.data.node / "homes",
        app_folders=app_folders,
        environments=core.sessions.environments,
        setup=EnvironmentSetup(folder=foundation.data.node / "environments"),
        containers=ContainerFiles(
            driving=agents.sandboxes.driving,
            occupancy=agents.sandboxes.occupancy,
            rules=snapshots.rules,
            owner=workspaces.node.owner,
            folder=foundation.data.node / "containers",
        ),
    )
    parts = RunParts(
        runs=core.sessions.runs,
        queue=core.sessions.queue,
        log=core.sessions.log,
        earlier=EarlierTurns(database=database),
        attachments=core.sessions.attachments,
        host=host,
        landing=RunLanding(workspaces=workspaces),
        occupancy=agents.sandboxes.occupancy,
        at_work=at_work,
        questions=RunQuestions(
            database=database,
            runs=core.sessions.runs,
            notifier=foundation.notifier,
            patience=timedelta(seconds=settings.question_wait_seconds),
        ),
        limits=RunLimits(
            seconds=settings.run_seconds,
            output_bytes=settings.output_bytes,
            keep_seconds=settings.program_idle_minutes * 60,
        ),
        snapshots=timedelta(minutes=settings.snapshot_minutes),
        settings=core.sessions.settings,
        main_model=settings.model,
        small_model=settings.small_model,
    )
    runs = MachineRuns(parts=parts, notifier=foundation.notifier)
    upkeep = WorkerUpkeep(
        database=database,
        repository=repository,
        host=host,
        retirement=WorkerRetirement(host=host),
        runs=runs,
        clock=foundation.clock,
    )
    async with AsyncExitStack() as stack:
        stack.push_async_callback(host.close)
        stack.push_async_callback(runs.close)
        yield WorkerServices(runs=runs, host=host, upkeep=upkeep, programs=programs)


def _app_folders(foundation: Foundation, core: CoreServices, agents: AgentServices) -> AppFolders:
    database, sessions, node = foundation.database, AppSessionRepository(), agents.workspaces.node
    source = DatabaseSnapshots(
        database=database, catalog=foundation.catalog, spool=SpoolFolder(foundation.data.node / "tmp")
    )
    return AppFolders(
        database=database,
        apps=AppRepository(),
        settings=core.sessions.settings,
        sessions=sessions,
        source=source,
        merges=LongMerges(foundation.compute),
        files=UserFiles(database=database, gate=core.gate, sessions=sessions, source=source, owner=node.owner),
        owner=node.owner,
    )


def waiting_work(core: CoreServices, agents: AgentServices, workers: WorkerServices | None) -> WaitingWork:
    """`workers`: None on a server that is no machine."""
    return WaitingWork(
        service=core.sessions.service,
        runs=core.sessions.runs,
        workspaces=agents.workspaces,
        landing=RunLanding(workspaces=agents.workspaces),
        host=None if workers is None else workers.host,
    )


def session_terminals(foundation: Foundation, core: CoreServices, workers: WorkerServices | None) -> SessionTerminals:
    """`workers`: None on a server that is no machine."""
    return SessionTerminals(
        database=foundation.database,
        access=core.sessions.service.access,
        identity=core.identity,
        clock=foundation.clock,
        host=None if workers is None else workers.host,
    )


def session_rewinds(foundation: Foundation, core: CoreServices, workers: WorkerServices | None) -> SessionRewinds:
    """`workers`: None on a server that is no machine."""
    return SessionRewinds(
        database=foundation.database,
        access=core.sessions.service.access,
        runs=core.sessions.runs,
        log=core.sessions.service.log,
        audit=foundation.audit,
        clock=foundation.clock,
        host=None if workers is None else workers.host,
    )
