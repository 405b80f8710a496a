"""Session workers on this machine: a session's folder, its sandbox, and the executor in it.

A worker is opened for a run and stays for the next one. Whatever is missing of it is made again: the folder from the
project and the session's last snapshot, the sandbox on the folder, the executor in the sandbox.
"""

import asyncio
import logging
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final
from weakref import WeakValueDictionary

from contextbase.commands.driver import MachineDriver
from contextbase.commands.model import SandboxEquipment
from contextbase.commands.occupancy import Occupancy
from contextbase.commands.sandboxes import AgentSandboxes
from contextbase.db.database import Database
from contextbase.errors import Conflict, ContextbaseError, HeldElsewhere, NotFound
from contextbase.identity.model import Action
from contextbase.ids import Clock
from contextbase.limits import ResourceLimits
from contextbase.sandbox.model import Network, StorageProof
from contextbase.sessions.agent_programs import AgentPrograms
from contextbase.sessions.app_folder import AppFolders
from contextbase.sessions.container_files import ContainerFiles
from contextbase.sessions.environment_setup import EnvironmentSetup
from contextbase.sessions.environments import ProjectEnvironments
from contextbase.sessions.executor_link import ExecutorLink, StreamHandler
from contextbase.sessions.live_worker import LiveWorker, SessionFolder, make_home
from contextbase.sessions.model import AgentSession, Land, RunId, SessionId, SyncStatus, WorkerState
from contextbase.sessions.rewind_repository import RewindRepository
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.snapshots import SessionSnapshots
from contextbase.sessions.worker_rows import WorkerRows
from contextbase.threads import in_thread
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.folder import remove_tree
from contextbase.workspaces.ignore_rules import AGENT_DATA
from contextbase.workspaces.model import Owner
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository, WorkspaceState
from contextbase.workspaces.results import Created
from contextbase.workspaces.service import WorkspaceService

__all__ = ["WaysOut", "WorkerHost"]

_log = logging.getLogger(__name__)

WaysOut = Callable[[AgentSession], Mapping[str, StreamHandler]]
"""What happens to the streams that a session's programs open: model, proxy, mcp."""

_STOP_PATIENCE: Final = 5.0  # seconds
_FAULT: Final = "The server failed to store the session's files. Its log says why."


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerHost:
    database: Database
    rows: WorkerRows
    workspaces: WorkspaceService
    registry: WorkspaceRepository
    sandboxes: AgentSandboxes
    occupancy: Occupancy
    driving: MachineDriver
    snapshots: SessionSnapshots
    programs: AgentPrograms
    limits: ResourceLimits  # but for time: a session's sandbox ends with the session
    ways_out: WaysOut
    clock: Clock
    homes: Path
    app_folders: AppFolders
    environments: ProjectEnvironments
    setup: EnvironmentSetup
    containers: ContainerFiles
    rewinds: RewindRepository = field(default_factory=RewindRepository)
    _live: dict[SessionId, LiveWorker] = field(default_factory=dict, init=False)
    _turns: WeakValueDictionary[SessionId, asyncio.Lock] = field(default_factory=WeakValueDictionary, init=False)

    @property
    def machine(self) -> str:
        return self.driving.node

    @property
    def owner(self) -> Owner:
        """Whose files agents' are."""
        return self.workspaces.node.owner

    @property
    def image(self) -> str:
        """What sandboxes are made of here."""
        return self.driving.name or "unknown"

    def live(self, session_id: SessionId) -> LiveWorker | None:
        return self._live.get(session_id)

    def is_open(self, session_id: SessionId) -> bool:
        """Whether nothing has to be done for `opened`."""
        live = self._live.get(session_id)
        return live is not None and not live.link.is_over

    async def is_gone(self, session: AgentSession) -> bool:
        """Whether the session has no folder any more. That of a deleted project is kept: see `WorkerRetirement`."""
        try:
            await self._record(session)
        except NotFound:
            return not await self.rows.has_no_project(session)
        return False

    async def folder(self, session: AgentSession) -> SessionFolder:
        """The session's folder on this machine, as it was left or as its last snapshot has it, and with what others
        have committed since."""
        async with self._turn(session.id):
            is_here = await self.rows.have_here(session)
            try:
                created = await (self._reopened(session) if is_here else self._created(session))
            except HeldElsewhere:
                await self._give_up_elsewhere(session)
                created = await self._created(session)
            restored = 0
            if created.is_new or not is_here:
                restored = await self._restore(session, created.record)
            await self.rows.put(session, None, None)
            created = await self._rewound(session, created)
            await self._bring_back(session, created.record, SnapshotReason.CATCH_UP)
        record, refreshed = created.record, None
        if not created.is_new:
            record, refreshed = await self.workspaces.refresh(session.caller(), session.workspace)
        version = None
        if session.app is not None:
            version = await self._composed(session, record, is_new=created.is_new and not restored)
        return SessionFolder(record=record, refreshed=refreshed, is_restored=restored > 0, runtime_version=version)

    async def _composed(self, session: AgentSession, record: WorkspaceRecord, *, is_new: bool) -> str:
        """By the app's manifest. What a new session begins with is committed: each run tells of its own work."""
        version = await self.app_folders.compose(session, record)
        if is_new and Action.WRITE in session.actions and session.land is Land.AUTO:
            wish = Wish(message=f"Begin with the app's template {version}")
            await self.workspaces.commit(session.caller(), session.workspace, wish=wish)
        return version

    async def catch_up(self, session: AgentSession) -> None:
        """Take the folder back to where the conversation went, if it is here and that has still to be done."""
        async with self._turn(session.id):
            if not await self.rows.have_here(session):
                return
            try:
                created = await self.workspaces.reopen(session.caller(), session.project_id, folder=session.folder)
            except NotFound:  # somebody removed it: it is made again, as the last snapshot has it
                await self.rows.lose_removed(session)
                return
            await self._rewound(session, created)

    async def opened(self, session: AgentSession) -> LiveWorker:
        """The session's sandbox with its executor, attached. Its folder must be here."""
        async with self._turn(session.id):
            live = self._live.get(session.id)
            return live if live is not None and self.is_open(session.id) else await self._open(session)

    async def stop(self, session: AgentSession) -> None:
        """Stop the sandbox, after all it has was stored; the folder stays. Raises what kept it from being stored, and
        then nothing is stopped."""
        async with self._turn(session.id):
            await self._store(session, SnapshotReason.PRE_STOP)
            if session.has_container:  # it has the files, and stays
                await self._halt(session)
            else:
                await self._end_sandbox(session)
            await self.rows.settle(session, WorkerState.STOPPED)

    async def remove(self, session: AgentSession) -> None:
        """Take all of it away from this machine, after it was stored; the next run begins with the snapshot."""
        async with self._turn(session.id):
            is_whole = await self.rows.have_whole(session)
            try:
                if session.has_container:  # nothing in it changes any more
                    await self._halt(session)
                if is_whole:  # or the last snapshot has more than the folder
                    await self._store(session, SnapshotReason.PRE_REMOVE)
                await self._end_sandbox(session)
                await self.workspaces.abandon(session.caller(), session.workspace)
            except NotFound:
                if not await self.is_gone(session):
                    raise
                is_whole = False  # what it had is in its last snapshot
            await in_thread(remove_tree, self.homes / str(session.id))
            await (self.rows.settle(session, WorkerState.DELETED) if is_whole else self.rows.lose(session))

    async def bring_back(self, session: AgentSession, reason: SnapshotReason) -> None:
        """What the agent did in a container of its own, into the session's folder."""
        async with self._turn(session.id):
            await self._bring_back(session, await self._record(session), reason)

    async def send_files(self, session: AgentSession, live: LiveWorker) -> None:
        """What the session's folder has, into its own container."""
        if session.has_container:
            async with self._turn(session.id):
                await self.containers.send(session, await self._record(session), live.link, live.sandbox_id)

    async def sync(self, session: AgentSession, reason: SnapshotReason, run_id: RunId | None = None) -> None:
        """`run_id`: of the run that has ended with this."""
        async with self._turn(session.id):
            await self._store(session, reason, run_id)

    @asynccontextmanager
    async def undisturbed(self, session_id: SessionId) -> AsyncIterator[None]:
        """No run gets the session's folder while the block lasts."""
        async with self._turn(session_id):
            yield

    async def start_over(self, session: AgentSession) -> None:
        """A new folder, with the agent program's own data and without the work that is not committed: a snapshot still
        has that for a while. Only in a block that is `undisturbed`. Cut off in the middle, nothing is thrown away: who
        comes next makes the folder again as it was before."""
        await self._store(session, SnapshotReason.PRE_DISCARD)
        before = await self.snapshots.newest(session)
        await self._end_sandbox(session)
        await self.rows.remake(session)  # a kill from here on leaves a folder that is not whole
        await self.workspaces.abandon(session.caller(), session.workspace)
        created = await self._created(session)
        if before is not None:
            await self.snapshots.restore(before, created.record, below=AGENT_DATA)
        await self._store(session, SnapshotReason.DISCARDED)
        await self.rows.put(session, None, None)

    async def let_go(self, session_id: SessionId) -> None:
        """Close the link; the executor and what runs in it go on."""
        if (live := self._live.pop(session_id, None)) is not None:
            await live.link.close()

    async def close(self) -> None:
        """Stop the sandboxes in which nothing is done, so that nothing is left behind on the machine; their files stay
        where they are. A run that is under way goes on without us, and the next process attaches to it."""
        await asyncio.gather(*map(self._rest, list(self._live.values())))
        for session_id in list(self._live):
            await self.let_go(session_id)

    async def _rest(self, live: LiveWorker) -> None:
        try:
            status = (await live.link.call("GET", "/status", patience=_STOP_PATIENCE)).checked()
            if status.get("run_id") is None:
                await live.driver.stop(live.sandbox_id)
        except ContextbaseError as error:
            extra = {"session_id": str(live.session_id), "error": error.message}
            _log.warning("the sandbox of a session was not stopped", extra=extra)

    async def _created(self, session: AgentSession) -> Created:
        return await self.workspaces.create(session.caller(), session.project_id, folder=session.folder)

    async def _reopened(self, session: AgentSession) -> Created:
        """Without making a folder first that is thrown away, unless the session has none after all."""
        try:
            return await self.workspaces.reopen(session.caller(), session.project_id, folder=session.folder)
        except NotFound:
            await self.rows.lose_removed(session)  # first: a restore that is cut off is done again
            return await self._created(session)

    async def _open(self, session: AgentSession) -> LiveWorker:
        await self.let_go(session.id)
        environment = await self.environments.of(session.project_id)
        home = self.homes / str(session.id)
        if session.has_container:
            await self.containers.driver()
            equipment = SandboxEquipment(image=environment.image, holds_files=True)
        else:
            is_new = await in_thread(make_home, home, self.workspaces.node.owner)
            mounts = await in_thread(self.programs.mounts)
            equipment = SandboxEquipment(image=environment.image, home=home, read_only=mounts)
        status, _ = await self.sandboxes.create(
            session.caller(),
            session.project_id,
            None,
            limits=replace(self.limits, max_execution_time=None),
            network=Network.LOOPBACK,
            environment={},
            equipment=equipment,
        )
        sandbox_id = status.record.id
        driver = await self.driving.driver(status.record.driver)
        await driver.start(sandbox_id)
        if session.has_container:
            is_new = await self.containers.is_new(session.id, sandbox_id)
        if is_new:
            await self.setup.seed(driver, sandbox_id, session.project_id, environment)
        link = await ExecutorLink.started(driver, sandbox_id, handlers=self.ways_out(session))
        try:
            await self.setup.run(link, session.project_id, environment, is_new=is_new)
            if session.has_container:
                await self.containers.send(session, status.workspace, link, sandbox_id)
        except BaseException:
            await link.close()
            raise
        (await link.call("POST", "/workspace/link-agent-data")).checked()
        live = LiveWorker(
            session_id=session.id,
            sandbox_id=sandbox_id,
            driver=driver,
            link=link,
            folders=() if session.has_container else (home, status.workspace.path),
        )
        self._live[session.id] = live
        version = link.about.get("executor")
        await self.rows.put(session, sandbox_id, str(version) if version is not None else None)
        return live

    async def _end_sandbox(self, session: AgentSession) -> None:
        record = await self._record(session)
        if not session.has_container:
            await self.let_go(session.id)
            await self.occupancy.leave(record.id)
            return
        await self._halt(session)
        proof = await self._bring_back(session, record, SnapshotReason.PRE_REMOVE)
        await self.occupancy.leave(record.id, proof)
        await self.containers.forget(session.id)

    async def _halt(self, session: AgentSession) -> None:
        """Stop the session's own container; it stays, with its files."""
        await self.let_go(session.id)
        await self.containers.stop(await self._record(session))

    async def _bring_back(
        self, session: AgentSession, record: WorkspaceRecord, reason: SnapshotReason
    ) -> StorageProof | None:
        if not session.has_container:
            return None
        live = self._live.get(session.id)
        link = None if live is None or live.link.is_over else live.link
        return await self.containers.bring_back(session, record, link, reason)

    async def _record(self, session: AgentSession) -> WorkspaceRecord:
        return await self.workspaces.path(session.caller(), session.workspace)

    async def _store(self, session: AgentSession, reason: SnapshotReason, run_id: RunId | None = None) -> None:
        """A snapshot, and what came of it in the worker's row. Raises `Conflict` for a folder that is being made again:
        as the newest snapshot it would take the place of all that the session had."""
        if reason is not SnapshotReason.DISCARDED and not await self.rows.have_whole(session):
            raise Conflict(
                "The session's folder is incomplete, because restoring it failed. The server tries again by itself."
            )
        began = self.clock.now()
        await self.rows.put_sync(session, SyncStatus.RUNNING)
        try:
            if session.app is not None:
                record = await self._record(session)
                await self._bring_back(session, record, reason)
                await self.app_folders.collect(session, record)
            await self.snapshots.take(session, reason, run_id=run_id)
        except Exception as error:
            told = error.message if isinstance(error, ContextbaseError) else _FAULT
            await self.rows.put_sync(session, SyncStatus.FAILED, error=told)
            raise
        if session.app is not None:
            await self.app_folders.stored(session, await self._record(session))
        await self.rows.put_sync(session, SyncStatus.SUCCESS, at=began)

    async def _rewound(self, session: AgentSession, created: Created) -> Created:
        """With what the agent program knew at the message that the conversation went back to; with files, in a new
        folder. Cut off in the middle, it is done again; a snapshot has what it takes away for a while."""
        async with self.database.connection() as connection:
            due = await self.rewinds.due(connection, session.id)
        if due is None:
            return created
        await self._store(session, SnapshotReason.PRE_REWIND)
        await self._end_sandbox(session)
        await in_thread(remove_tree, self.homes / str(session.id))
        if due.with_files:
            await self.workspaces.abandon(session.caller(), session.workspace)
            created = await self._created(session)
        else:
            await in_thread(remove_tree, created.record.path / AGENT_DATA)
        snapshot = None if due.snapshot_id is None else await self.snapshots.get(due.snapshot_id)
        if snapshot is not None:
            await self.snapshots.restore(snapshot, created.record, below=None if due.with_files else AGENT_DATA)
        await self.rows.put(session, None, None)
        await self._store(session, SnapshotReason.REWOUND)
        async with self.database.connection() as connection:
            await self.rewinds.finish(connection, session.id, due.id)
        return created

    async def _restore(self, session: AgentSession, record: WorkspaceRecord) -> int:
        snapshot = await self.snapshots.newest(session)
        if snapshot is None:
            return 0
        return await self.snapshots.restore(snapshot, record)

    async def _give_up_elsewhere(self, session: AgentSession) -> None:
        """Its folder is on a machine that is lost: the queue gives a session to another machine only then. What that
        machine still has stays there, for `contextbase session rescue`."""
        async with self.database.transaction() as connection:
            record = await self.registry.open_one(connection, session.project_id, session.agent.id)
            if record is not None and record.node != self.machine:
                await self.registry.end(connection, record.id, WorkspaceState.LOST)
                extra = {"session_id": str(session.id), "machine": record.node}
                _log.warning("a session goes on without its folder on a lost machine", extra=extra)

    def _turn(self, session_id: SessionId) -> asyncio.Lock:
        """One at a time changes what a session has here."""
        return self._turns.setdefault(session_id, asyncio.Lock())
