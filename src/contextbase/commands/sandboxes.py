"""A sandbox on an agent's workspace that lasts: for agents elsewhere, who send one command after the other."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from contextbase.commands.audit_rows import record_command
from contextbase.commands.driver import MachineDriver
from contextbase.commands.model import SandboxEquipment, SandboxRecord
from contextbase.commands.occupancy import Occupancy
from contextbase.commands.repository import SandboxRepository
from contextbase.db.database import Database
from contextbase.errors import Conflict, HeldElsewhere, MachineProblem, NotFound
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, SystemClock, new_uuid
from contextbase.limits import ResourceLimits
from contextbase.sandbox.model import Command, Network, SandboxId, SandboxSpec, SandboxState, SandboxStats
from contextbase.sandbox.ports import Execution, SandboxDriver
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.repository import WorkspaceRecord
from contextbase.workspaces.service import WorkspaceService

__all__ = ["AgentSandboxes", "SandboxStatus"]

_PLAIN: Final = SandboxEquipment()


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxStatus:
    record: SandboxRecord
    workspace: WorkspaceRecord
    state: SandboxState
    stats: SandboxStats | None  # None: nothing runs in it


@dataclass(frozen=True, kw_only=True, slots=True)
class AgentSandboxes:
    """A workspace has one sandbox at the most. A sandbox that stopped (a reboot, a long silence) starts again with the
    next command: the workspace is as it was, the rest of its files is gone."""

    database: Database
    repository: SandboxRepository
    workspaces: WorkspaceService
    occupancy: Occupancy
    driving: MachineDriver
    activity: Activity

    async def create(
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None,
        *,
        limits: ResourceLimits,
        network: Network,
        environment: Mapping[str, str],
        equipment: SandboxEquipment = _PLAIN,
    ) -> tuple[SandboxStatus, bool]:
        """On the agent's workspace, made if need be; False: it had this one already, as it is."""
        caller.require(Action.WRITE, project_id)
        workspace = (await self.workspaces.create(caller, project_id, agent)).record
        driver = await self.driving.driver()
        now = SystemClock().now()
        record = SandboxRecord(
            id=SandboxId(int=new_uuid().int),
            workspace_id=workspace.id,
            project_id=project_id,
            principal=workspace.principal,
            node=workspace.node,
            driver=driver.name,
            network=network,
            limits=limits,
            created_at=now,
            seen_at=now,
        )
        async with self.database.connection() as connection:
            made_at = await self.repository.insert(connection, record)
        async with self.workspaces.alone(workspace.id):  # whoever ends it takes its mount down for a while
            record = await self._of_workspace(workspace)
            if made_at is None and await self._is_made(record):
                return await self._status(record, workspace), False
            try:
                driver = await self.driving.driver(record.driver)
                await self._make(driver, record, workspace, environment, equipment)
            except BaseException:
                await self.occupancy.leave(workspace.id)
                raise
            await self._record(caller, record, "sandbox.start", "started")
        return await self._status(record, workspace), made_at is not None

    async def status(self, caller: Caller, sandbox_id: SandboxId) -> SandboxStatus:
        record, workspace = await self._entered(caller, sandbox_id)
        return await self._status(record, workspace)

    async def check(self, caller: Caller, sandbox_id: SandboxId) -> None:
        """Raises when the caller may not use it, or not any more."""
        await self._found(caller, sandbox_id)

    async def list(
        self, caller: Caller, project_id: ProjectId | None, *, before: SandboxId | None = None, limit: int = 100
    ) -> list[SandboxRecord]:
        """Newest first: everybody's for who may manage the project (None: all), else the caller's own. With a token for
        one folder the caller's own on workspaces that show no more than that."""
        agent = caller.listed_principal(project_id)
        async with self.database.connection() as connection:
            return await self.repository.page(
                connection,
                project_id=project_id,
                agent=agent,
                before=before,
                limit=limit,
                within=caller.grant.path_prefix,
            )

    async def exec(
        self,
        caller: Caller,
        sandbox_id: SandboxId,
        command: Command,
    ) -> Execution:
        record, workspace = await self._entered(caller, sandbox_id)
        driver = await self.driving.driver(record.driver)
        async with self.database.connection() as connection:
            await self.repository.seen(connection, record.id)
        await record_command(self.activity, caller, workspace, command)
        try:
            execution = await driver.exec(record.id, command)
        except Conflict:
            await driver.start(record.id)
            execution = await driver.exec(record.id, command)
        self.occupancy.follow(record.id, execution)
        return execution

    async def remove(self, caller: Caller, sandbox_id: SandboxId) -> SandboxRecord:
        """End all that runs in it, and the sandbox. The workspace stays, with the work in it."""
        record = await self._found(caller, sandbox_id)
        if not self.workspaces.node.holds(record.node):
            raise HeldElsewhere(
                f"The sandbox {sandbox_id} is on the machine {record.node}, and this is {self.driving.node}; send the "
                "request there.",
                machine=record.node,
            )
        async with self.workspaces.alone(record.workspace_id):  # not while another call makes it
            await self.occupancy.leave(record.workspace_id)
            await self._record(caller, record, "sandbox.stop", "stopped")
        return record

    async def _record(self, caller: Caller, record: SandboxRecord, action: str, did: str) -> None:
        told = f"{did} a sandbox ({record.driver}, network {record.network})"
        about = (record.project_id, record.workspace_id)
        await self.activity.record(caller.working_as(record.principal), about, action, told, sandbox_id=str(record.id))

    async def _of_workspace(self, workspace: WorkspaceRecord) -> SandboxRecord:
        async with self.database.connection() as connection:
            record = await self.repository.of_workspace(connection, workspace.id)
        if record is None:
            raise Conflict("Another call has just removed the sandbox of this workspace; try again.")
        return record

    async def _is_made(self, record: SandboxRecord) -> bool:
        """A crash may have come between the row and the sandbox, or somebody removed it behind our back."""
        driver = await self.driving.driver(record.driver)
        try:
            await driver.inspect(record.id)
        except NotFound:
            return False
        return True

    async def _make(
        self,
        driver: SandboxDriver,
        record: SandboxRecord,
        workspace: WorkspaceRecord,
        environment: Mapping[str, str],
        equipment: SandboxEquipment,
    ) -> None:
        spec = SandboxSpec(
            id=record.id,
            folder=None if equipment.holds_files else workspace.path,
            limits=record.limits,
            network=record.network,
            environment=environment,
            image=equipment.image,
            home=equipment.home,
            read_only=equipment.read_only,
            labels={"workspace": str(workspace.id), "project": str(workspace.project_id)},
        )
        await driver.create(spec)
        await driver.start(record.id)

    async def _status(self, record: SandboxRecord, workspace: WorkspaceRecord) -> SandboxStatus:
        driver = await self.driving.driver(record.driver)
        try:
            state = (await driver.inspect(record.id)).state
            stats = await driver.stats(record.id) if state is SandboxState.RUNNING else None
        except MachineProblem:  # nothing here counts what it uses
            stats = None
        except Conflict:  # it ended between the two questions
            state, stats = SandboxState.STOPPED, None
        return SandboxStatus(record=record, workspace=workspace, state=state, stats=stats)

    async def _entered(self, caller: Caller, sandbox_id: SandboxId) -> tuple[SandboxRecord, WorkspaceRecord]:
        """The sandbox and its workspace, if the caller may still see what is in it."""
        record = await self._found(caller, sandbox_id)
        workspace = await self.workspaces.path(caller, NamedWorkspace(record.project_id, str(record.principal)))
        if workspace.id != record.workspace_id:
            raise NotFound("The workspace of this sandbox has ended; create a new one.")
        return record, workspace

    async def _found(self, caller: Caller, sandbox_id: SandboxId) -> SandboxRecord:
        """Who may not act for its agent does not learn that it is there."""
        grant = caller.grant
        async with self.database.connection() as connection:
            record = await self.repository.get(connection, sandbox_id, within=grant.path_prefix)
        if record is not None and grant.reaches(record.project_id):
            if record.principal.id == caller.principal.id:
                caller.require(Action.WRITE, record.project_id)
                return record
            if caller.administers(record.project_id):
                caller.require(Action.WRITE, record.project_id)  # commands change the agent's files
                return record
        raise NotFound(f"There is no sandbox {sandbox_id}.")
