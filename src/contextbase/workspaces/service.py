"""Workspaces as their users know them: a folder for every agent, and the way back."""

from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import replace
from typing import Final

from contextbase.compare import FileDiff
from contextbase.db.database import Database
from contextbase.errors import Conflict, ContextbaseError, InvalidInput, NotFound, TooBusy
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.admission import Admission
from contextbase.workspaces.agents import Agents
from contextbase.workspaces.checkpoints import Checkpoints, Committed, Wish
from contextbase.workspaces.creation import WorkspaceCreation, refuse_other
from contextbase.workspaces.diffs import WorkspaceDiffs
from contextbase.workspaces.ending import WorkspaceEnding
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import NamedWorkspace, WorkspaceId
from contextbase.workspaces.refresh.service import Refreshed, Refreshes
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository, WorkspaceState
from contextbase.workspaces.results import Completed, Created
from contextbase.workspaces.sender import ScanResult
from contextbase.workspaces.turns import WorkspaceTurns
from contextbase.workspaces.visits import Visits

__all__ = ["Completed", "Created", "WorkspaceService"]

_MOST_TRIES: Final = 5


class WorkspaceService:
    """Raises `NotFound` when one is named by its id, and the agent has another by now."""

    def __init__(
        self,
        *,
        database: Database,
        registry: WorkspaceRepository,
        agents: Agents,
        node: Machine,
        checkpoints: Checkpoints,
        refreshes: Refreshes,
        diffs: WorkspaceDiffs,
        admission: Admission,
        activity: Activity,
        creation: WorkspaceCreation,
        ending: WorkspaceEnding,
        turns: WorkspaceTurns,
    ) -> None:
        self._database = database
        self._registry = registry
        self._agents = agents
        self.node = node
        self._checkpoints = checkpoints
        self._refreshes = refreshes
        self._diffs = diffs
        self._admission = admission
        self._activity = activity
        self._creation = creation
        self._ending = ending
        self._turns = turns
        self._visits = Visits()

    async def create(
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None = None,
        *,
        at: Seq | None = None,
        folder: TreePath | None = None,
        has_metadata: bool = False,
    ) -> Created:
        """The agent's workspace on a snapshot (None: the head), of the project or of a folder in it. If it has one
        already, that one, as it is; `Conflict` if that one was made from another snapshot or folder than asked for, or
        without metadata though they are."""
        if not self._admission.makes_here:
            await self._refuse_to_make(caller, project_id, agent)
        acting = await self._agents.acting(caller, project_id, agent, make=True)
        acting.require(Action.READ, project_id)
        for _ in range(_MOST_TRIES):
            made = await self._creation.new(acting, project_id, at, folder, has_metadata=has_metadata)
            if made is not None:
                return Created(record=made, is_new=True)
            async with AsyncExitStack() as stack:
                try:
                    existing = await stack.enter_async_context(self._alone_with(acting, NamedWorkspace(project_id)))
                except NotFound:  # another call has just ended it
                    continue
                refuse_other(existing, at, folder, has_metadata=has_metadata)
                return await self._opened_again(acting, existing)
        raise TooBusy(f"Other calls end the workspaces of {acting.principal.name} as they are made; try again.")

    async def reopen(self, caller: Caller, project_id: ProjectId, *, folder: TreePath | None = None) -> Created:
        """As `create` for an agent that has a workspace, and faster: nothing is made. `NotFound` if it has none."""
        acting = await self._agents.acting(caller, project_id, None)
        acting.require(Action.READ, project_id)
        async with self._alone_with(acting, NamedWorkspace(project_id)) as existing:
            refuse_other(existing, None, folder, has_metadata=False)
            return await self._opened_again(acting, existing)

    async def _opened_again(self, acting: Caller, existing: WorkspaceRecord) -> Created:
        await self._admission.refuse_narrowed(acting, existing)
        await (await self.node.site()).provider.open_workspace(existing.id)
        return Created(record=existing, is_new=False)

    async def refuse_unless_machine(self) -> None:
        """Raise `HeldElsewhere`, with a machine that will do, if this server is none."""
        if not self.node.is_here:
            await self._admission.refuse_to_be_chosen()

    async def _refuse_to_make(self, caller: Caller, project_id: ProjectId, agent: str | None) -> None:
        """Raise `HeldElsewhere` if another machine is to answer. Nothing is made before, the agent neither."""
        caller.require(Action.READ, project_id)
        acting = None
        with suppress(NotFound):
            acting = await self._agents.acting(caller, project_id, agent)
        await self._admission.refuse_to_make(acting, project_id)

    async def path(self, caller: Caller, named: NamedWorkspace) -> WorkspaceRecord:
        """Where the agent works; after a crash or reboot the folder is there again when this returns."""
        acting = await self.acting(caller, named)
        async with self._alone_with(acting, named) as record:
            await self._admission.refuse_narrowed(acting, record)
            await (await self.node.site()).provider.open_workspace(record.id)
        async with self._database.connection() as connection:
            await self._registry.seen(connection, record.id)
        return record

    @asynccontextmanager
    async def visited(self, caller: Caller, named: NamedWorkspace) -> AsyncIterator[WorkspaceRecord]:
        """The agent's open workspace, with its folder in place until the block ends. Commits go on meanwhile; whoever
        ends the workspace waits a while."""
        acting = await self.acting(caller, named)
        for _ in range(_MOST_TRIES):
            meant = await self._admission.found(acting, named.project_id)
            _check_meant(meant.id, named.id)
            provider = (await self.node.site()).provider
            async with self._visits.entered(meant.id):
                record = await self._admission.found(acting, named.project_id)
                await self._admission.refuse_narrower(acting, record)
                await self._admission.refuse_narrowed(acting, record)
                if record.id == meant.id and await provider.is_open(record.id):
                    yield record
                    return
            async with self.alone(meant.id):
                await provider.open_workspace(meant.id)
        raise TooBusy(f"The workspace of {acting.principal.name} is being ended or opened; try again.")

    async def acting(self, caller: Caller, named: NamedWorkspace) -> Caller:
        """The caller as the agent whose workspace it is; raises for who may not act for it."""
        return await self._agents.acting(caller, named.project_id, named.agent)

    async def opened(
        self, caller: Caller, named: NamedWorkspace, *, anywhere: bool = False
    ) -> tuple[Caller, WorkspaceRecord | None]:
        """Who acts, and the open workspace they have, if they have one. `anywhere`: it may be on another machine."""
        acting = await self.acting(caller, named)
        if (record := await self._admission.found_anywhere(acting, named.project_id)) is not None and not anywhere:
            self._admission.refuse_elsewhere(record)
        return acting, record

    async def status(self, caller: Caller, named: NamedWorkspace) -> tuple[WorkspaceRecord, ScanResult]:
        """What is in the folder and not committed yet."""
        acting = await self.acting(caller, named)
        async with self._alone_with(acting, named) as record:
            await self._admission.refuse_narrowed(acting, record)
            return record, await self._checkpoints.look(record)

    async def diff(
        self,
        caller: Caller,
        named: NamedWorkspace,
        *,
        below: TreePath | None = None,
        after: str = "",
        limit: int = 100,
    ) -> tuple[list[FileDiff], str | None]:
        """How what is not committed yet differs, in path order, and where the next page starts."""
        acting = await self.acting(caller, named)
        async with self._alone_with(acting, named) as record:
            await self._admission.refuse_narrowed(acting, record)
            look = await self._checkpoints.look(record)
            wanted = sorted(
                (
                    change
                    for change in look.changes
                    if change.path > after and (below is None or change.path == below or change.path.is_below(below))
                ),
                key=lambda change: change.path,
            )
            page = wanted[:limit]
            return await self._diffs.of(record, page), page[-1].path if len(wanted) > limit else None

    async def commit(
        self, caller: Caller, named: NamedWorkspace, *, wish: Wish, refresh: bool = False
    ) -> tuple[WorkspaceRecord, Committed]:
        """A checkpoint: what changed goes through the gate, and the agent goes on in its folder; if wanted, with what
        others have changed."""
        acting = await self.acting(caller, named)
        async with self._alone_with(acting, named) as opened:
            record, committed = await self._checkpoints.make(acting, opened, wish)
            if committed.changes:
                told, about = f"committed a workspace: {committed.told}", (record.project_id, record.id)
                await self._activity.record(acting, about, "workspace.commit", told, seq=committed.seq)
            if not refresh:
                return record, committed
            try:
                record, refreshed = await self._refresh(acting, record)
            except ContextbaseError as error:  # what was committed is in all the same
                note = f"The folder was not refreshed: {error.message}"
                return record, replace(committed, notes=(*committed.notes, note))
            return record, replace(committed, refreshed=refreshed)

    async def refresh(self, caller: Caller, named: NamedWorkspace) -> tuple[WorkspaceRecord, Refreshed]:
        """Bring what others have changed into the folder, while the agent and its programs may work in it."""
        acting = await self.acting(caller, named)
        async with self._alone_with(acting, named) as opened:
            _, record = await self._checkpoints.resume(acting, opened, Wish())
            return await self._refresh(acting, record)

    async def complete(self, caller: Caller, named: NamedWorkspace, *, wish: Wish, discard: bool = False) -> Completed:
        """Commit, then remove the folder, unless it holds what could not be committed (with `discard`, also then).

        Harmless when it was completed already."""
        acting = await self.acting(caller, named)
        meant = await self._admission.last(acting, named.project_id)
        _check_meant(meant.id, named.id)
        if meant.state is WorkspaceState.OPEN:
            self._admission.refuse_elsewhere(meant)
        async with self.alone(meant.id):
            last = await self._admission.last(acting, named.project_id)
            if last.id != meant.id:
                raise Conflict("Another call has ended this workspace, and a new one was made; ask for its status.")
            await self._admission.refuse_narrower(acting, last)
            if last.state is WorkspaceState.COMPLETED:
                return Completed(record=last, committed=Committed(seq=None), is_removed=True)
            record = await self._refreshes.finish(acting, self._admission.open_here(acting, last))
            provider = (await self.node.site()).provider
            async with self._visits.kept_out(record.id):
                try:
                    completed = await self._ending.complete(acting, record, wish, discard=discard)
                except Exception:
                    await provider.open_workspace(record.id)
                    raise
                if not completed.is_removed:
                    await provider.open_workspace(record.id)
            return completed

    async def abandon(self, caller: Caller, named: NamedWorkspace) -> WorkspaceRecord:
        """Remove the folder and what is in it for good; `Conflict` while a process is in it."""
        acting = await self.acting(caller, named)
        acting.require(Action.WRITE, named.project_id)
        async with (
            self._alone_with(acting, named, to_be_removed=True) as record,
            self._visits.kept_out(record.id),
        ):
            return await self._ending.abandon(acting, record)

    async def list(
        self,
        caller: Caller,
        project_id: ProjectId | None,
        *,
        state: WorkspaceState | None = WorkspaceState.OPEN,
        before: WorkspaceId | None = None,
        limit: int = 100,
    ) -> list[WorkspaceRecord]:
        """Newest first: everybody's for who may manage the project (None: all), else the caller's own. With a token for
        one folder the caller's own that show no more than that."""
        agent = caller.listed_principal(project_id)
        async with self._database.connection() as connection:
            return await self._registry.page(
                connection,
                project_id=project_id,
                agent=agent,
                state=state,
                before=before,
                limit=limit,
                within=caller.grant.path_prefix,
            )

    async def find(self, caller: Caller, workspace_id: WorkspaceId) -> WorkspaceRecord:
        """By its id, open or ended. `NotFound` for those of others, unless the caller may manage the project or
        owns the agent's session."""
        async with self._database.connection() as connection:
            found = await self._registry.by_id(connection, workspace_id)
        if found is None or not await self._agents.may_find(caller, found.project_id, found.principal):
            raise NotFound(f"There is no workspace {workspace_id}.")
        return found

    async def project_of(self, caller: Caller, agent: str) -> ProjectId:
        """The one project that the agent has a workspace in, or had its last; `InvalidInput` when there are several."""
        acting = await self._agents.acting(caller, caller.grant.project_id, agent)
        async with self._database.connection() as connection:
            projects = await self._registry.projects_of(connection, acting.principal.id)
        if not projects:
            raise NotFound(f"{agent} has no workspace.")
        if len(projects) > 1:
            raise InvalidInput(f"{agent} has workspaces in {len(projects)} projects: say which one with project.")
        return projects[0]

    async def _refresh(self, acting: Caller, record: WorkspaceRecord) -> tuple[WorkspaceRecord, Refreshed]:
        await self._admission.refuse_narrowed(acting, record)
        record, refreshed = await self._refreshes.make(acting, record)
        if refreshed.arrived or refreshed.merged:
            told, about = f"refreshed a workspace to {refreshed.seq}: {refreshed.told}", (record.project_id, record.id)
            await self._activity.record(acting, about, "workspace.refresh", told)
        return record, refreshed

    @asynccontextmanager
    async def _alone_with(
        self, acting: Caller, named: NamedWorkspace, *, to_be_removed: bool = False
    ) -> AsyncIterator[WorkspaceRecord]:
        """The acting agent's open workspace, as it is once no other call is at it. Nothing in it is half-way, unless it
        is `to_be_removed`."""
        meant = await self._admission.found(acting, named.project_id)
        _check_meant(meant.id, named.id)
        async with self.alone(meant.id):
            record = await self._admission.found(acting, named.project_id)
            if record.id != meant.id:
                raise NotFound(f"The workspace {meant.id} was ended by another call meanwhile.")
            await self._admission.refuse_narrower(acting, record)
            yield record if to_be_removed else await self._refreshes.finish(acting, record)

    def alone(self, workspace_id: WorkspaceId) -> AbstractAsyncContextManager[None]:
        """One call at a time for a workspace."""
        return self._turns.alone(workspace_id)

    def is_being_made(self, workspace_id: WorkspaceId) -> bool:
        """Its folder may be there before its row."""
        return self._creation.is_under_way(workspace_id)


def _check_meant(found: WorkspaceId, meant: WorkspaceId | None) -> None:
    if meant not in (None, found):
        raise NotFound(f"The workspace {meant} has ended; the agent has another one now.")
