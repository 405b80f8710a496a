"""Workspaces as their users know them: a folder for every agent, and the way back."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Final
from weakref import WeakValueDictionary

from contextbase.audit.model import OperatorType
from contextbase.compare import FileDiff
from contextbase.db.database import Database
from contextbase.errors import Conflict, ContextbaseError, Forbidden, HeldElsewhere, InvalidInput, NotFound
from contextbase.gate.service import Gate
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, SystemClock, TreePath, new_uuid
from contextbase.storage.blobs.waiting import in_thread
from contextbase.workspaces.agents import Agents
from contextbase.workspaces.checkpoints import Checkpoints, Committed, Wish
from contextbase.workspaces.comparing import WorkspaceDiffs
from contextbase.workspaces.editing import left_in
from contextbase.workspaces.model import View, WorkspaceId
from contextbase.workspaces.node import Node
from contextbase.workspaces.ports import Provider
from contextbase.workspaces.registry import Record, Registry, WorkspaceState
from contextbase.workspaces.sending import Look
from contextbase.workspaces.sight import Sight, hides_more

__all__ = ["Completed", "Created", "Workspaces"]

_AS_IT_WAS: Final = "Nothing is lost: the folder is as it was."


@dataclass(frozen=True, kw_only=True, slots=True)
class Created:
    record: Record
    is_new: bool  # False: the agent had this one already


@dataclass(frozen=True, kw_only=True, slots=True)
class Completed:
    record: Record
    committed: Committed
    is_removed: bool
    kept_because: tuple[str, ...] = ()  # sentences: why the folder is still there, and how to go on


class Workspaces:
    """`agent` names whose workspace is meant, None the caller's own. An agent has one at a time in each project."""

    def __init__(
        self,
        *,
        database: Database,
        gate: Gate,
        registry: Registry,
        agents: Agents,
        node: Node,
        checkpoints: Checkpoints,
        diffs: WorkspaceDiffs,
        sight: Sight,
    ) -> None:
        self._database = database
        self._gate = gate
        self._registry = registry
        self._agents = agents
        self.node = node
        self._checkpoints = checkpoints
        self._diffs = diffs
        self._sight = sight
        self._locks: WeakValueDictionary[WorkspaceId, asyncio.Lock] = WeakValueDictionary()
        self._creating: set[WorkspaceId] = set()

    async def create(self, caller: Caller, project_id: ProjectId, agent: str | None = None) -> Created:
        """The agent's workspace on the head; if it has one already, that one, as it is."""
        acting = await self._agents.acting(caller, project_id, agent, make=True)
        acting.require(Action.READ, project_id)
        provider = (await self.node.site()).provider
        async with self._database.connection() as connection:
            opened = await self._gate.opened(connection, acting, project_id)
            view = await self._sight.of_head(connection, project_id, opened)
        now = SystemClock().now()
        workspace_id = WorkspaceId(int=new_uuid().int)
        record = Record(
            id=workspace_id,
            project_id=project_id,
            principal=acting.principal,
            node=self.node.name,
            provider=provider.name,
            path=self.node.root / "workspaces" / str(workspace_id),
            epoch=opened.epoch,
            base=opened.seq,
            policy_version=opened.policy.version,
            state=WorkspaceState.OPEN,
            checkpoint=0,
            pending=None,
            created_at=now,
            seen_at=now,
            ended_at=None,
        )
        made_at = await self._make(provider, record, view)
        if made_at is not None:
            return Created(record=replace(record, created_at=made_at, seen_at=made_at), is_new=True)
        existing = await self._found(acting, project_id)
        await self._refuse_narrowed(acting, existing)
        await provider.open_workspace(existing.id)
        return Created(record=existing, is_new=False)

    async def path(self, caller: Caller, project_id: ProjectId, agent: str | None = None) -> Record:
        """Where the agent works; after a crash or reboot the folder is there again when this returns."""
        acting, record = await self._named(caller, project_id, agent)
        await self._refuse_narrowed(acting, record)
        provider = (await self.node.site()).provider
        await provider.open_workspace(record.id)
        async with self._database.connection() as connection:
            await self._registry.seen(connection, record.id)
        return record

    async def status(self, caller: Caller, project_id: ProjectId, agent: str | None = None) -> tuple[Record, Look]:
        """What is in the folder and not committed yet."""
        acting, record = await self._named(caller, project_id, agent)
        await self._refuse_narrowed(acting, record)
        async with self._alone(record.id):
            return record, await self._checkpoints.look(record)

    async def diff(
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None = None,
        *,
        below: TreePath | None = None,
        after: str = "",
        limit: int = 100,
    ) -> tuple[list[FileDiff], str | None]:
        """How what is not committed yet differs, in path order, and where the next page starts."""
        record, look = await self.status(caller, project_id, agent)
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
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None = None,
        *,
        wish: Wish,
        operator_type: OperatorType,
    ) -> tuple[Record, Committed]:
        """A checkpoint: what changed goes through the gate, and the agent goes on in its folder."""
        acting, record = await self._named(caller, project_id, agent)
        way_in = self._agents.way_in(acting, caller, operator_type)
        async with self._alone(record.id):
            record = await self._found(acting, project_id)
            return record, await self._checkpoints.make(acting, record, wish, operator_type=way_in)

    async def complete(
        self,
        caller: Caller,
        project_id: ProjectId,
        agent: str | None = None,
        *,
        wish: Wish,
        operator_type: OperatorType,
        discard: bool = False,
    ) -> Completed:
        """Commit, then remove the folder, unless it holds what could not be committed (with `discard`, also then).

        Harmless when it was completed already."""
        acting = await self._agents.acting(caller, project_id, agent)
        way_in = self._agents.way_in(acting, caller, operator_type)
        last = await self._last(acting, project_id)
        async with self._alone(last.id):
            last = await self._last(acting, project_id)
            if last.state is WorkspaceState.COMPLETED:
                return Completed(record=last, committed=Committed(seq=None), is_removed=True)
            record = await self._found(acting, project_id)
            provider = (await self.node.site()).provider
            try:
                completed = await self._complete(acting, record, provider, wish, way_in, discard=discard)
            except ContextbaseError:
                await provider.open_workspace(record.id)
                raise
            if not completed.is_removed:
                await provider.open_workspace(record.id)
            return completed

    async def abandon(self, caller: Caller, project_id: ProjectId, agent: str | None = None) -> Record:
        """Remove the folder and what is in it for good; `Conflict` while a process is in it."""
        acting, record = await self._named(caller, project_id, agent)
        provider = (await self.node.site()).provider
        async with self._alone(record.id):
            record = await self._found(acting, project_id)
            await provider.close_workspace(record.id)
            await self._end(provider, record, WorkspaceState.ABANDONED)
        return replace(record, state=WorkspaceState.ABANDONED)

    async def list(
        self,
        caller: Caller,
        project_id: ProjectId | None,
        *,
        state: WorkspaceState | None = WorkspaceState.OPEN,
        before: WorkspaceId | None = None,
        limit: int = 100,
    ) -> list[Record]:
        """Newest first: everybody's for who may manage the project (None: all), else the caller's own."""
        everybody = Action.ADMIN in caller.token.actions
        caller.require(Action.ADMIN if everybody else Action.READ, project_id)
        async with self._database.connection() as connection:
            return await self._registry.page(
                connection,
                project_id=project_id,
                agent=None if everybody else caller.principal.id,
                state=state,
                before=before,
                limit=limit,
            )

    async def project_of(self, caller: Caller, agent: str) -> ProjectId:
        """The one project that the agent has a workspace in, or had its last; `InvalidInput` when there are several."""
        acting = await self._agents.acting(caller, caller.token.project_id, agent)
        async with self._database.connection() as connection:
            projects = await self._registry.projects_of(connection, acting.principal.id)
        if not projects:
            raise NotFound(f"{agent} has no workspace.")
        if len(projects) > 1:
            raise InvalidInput(f"{agent} has workspaces in {len(projects)} projects: say which with project_id.")
        return projects[0]

    def is_being_made(self, workspace_id: WorkspaceId) -> bool:
        """Its folder may be there before its row."""
        return workspace_id in self._creating

    async def _make(self, provider: Provider, record: Record, view: View) -> datetime | None:
        """The row and the folder at the same time; None when the agent has a workspace already."""
        self._creating.add(record.id)
        try:
            made = asyncio.create_task(provider.create_workspace(record.id, view))
            try:
                async with self._database.connection() as connection:
                    made_at = await self._registry.insert(connection, record)
            except BaseException:
                await asyncio.gather(made, return_exceptions=True)
                await provider.cleanup(record.id)
                raise
            try:
                await made
            except BaseException:
                if made_at is not None:
                    async with self._database.connection() as connection:
                        await self._registry.drop(connection, record.id)
                raise
            if made_at is None:
                await provider.cleanup(record.id)
            return made_at
        finally:
            self._creating.discard(record.id)

    async def _named(self, caller: Caller, project_id: ProjectId, agent: str | None) -> tuple[Caller, Record]:
        acting = await self._agents.acting(caller, project_id, agent)
        return acting, await self._found(acting, project_id)

    async def _last(self, acting: Caller, project_id: ProjectId) -> Record:
        """The acting agent's newest workspace, whether it is open or ended."""
        acting.require(Action.READ, project_id)
        async with self._database.connection() as connection:
            record = await self._registry.last_one(connection, project_id, acting.principal.id)
        if record is None:
            raise NotFound(f"{acting.principal.name} has no workspace in this project; create one.")
        return record

    async def _found(self, acting: Caller, project_id: ProjectId) -> Record:
        """The acting agent's open workspace, if it is on this node."""
        acting.require(Action.READ, project_id)
        async with self._database.connection() as connection:
            record = await self._registry.open_one(connection, project_id, acting.principal.id)
        if record is None:
            raise NotFound(f"{acting.principal.name} has no open workspace in this project; create one.")
        if record.node != self.node.name:
            raise HeldElsewhere(
                f"The workspace of {acting.principal.name} is on the node {record.node}, and this is "
                f"{self.node.name}; send the request there.",
                node=record.node,
            )
        return record

    async def _refuse_narrowed(self, acting: Caller, record: Record) -> None:
        """What may be seen no more is not shown again, although the folder was made when it could be."""
        async with self._database.connection() as connection:
            opened = await self._gate.opened(connection, acting, record.project_id)
            if opened.epoch != record.epoch or opened.policy.version == record.policy_version:
                return
            now = await self._sight.at(connection, record.project_id, opened, record.base)
        provider = (await self.node.site()).provider
        then = (await provider.open_workspace(record.id)).view
        if not hides_more(now.masked, then.masked):
            return
        with suppress(Conflict):  # a process is in it: it sees what it saw, until it ends
            await provider.close_workspace(record.id)
        raise Forbidden(
            "What you may see in this project was narrowed since the workspace was made. Its changes can still be "
            f"committed: complete or abandon it, then create a new one. {_AS_IT_WAS}"
        )

    async def _complete(
        self,
        acting: Caller,
        record: Record,
        provider: Provider,
        wish: Wish,
        operator_type: OperatorType,
        *,
        discard: bool,
    ) -> Completed:
        kept_because: list[str] = []
        try:
            await provider.close_workspace(record.id)
        except Conflict as busy:
            kept_because.append(busy.message)
        committed = await self._checkpoints.make(
            acting, record, wish, operator_type=operator_type, last=not kept_because
        )
        work = await provider.work_folder(record.id)
        if not discard:
            kept_because += [reported.reason for reported in committed.reported]
            kept_because += await in_thread(left_in, work, self.node.owner)
        if kept_because:
            return Completed(
                record=record, committed=committed, is_removed=False, kept_because=tuple(dict.fromkeys(kept_because))
            )
        await self._end(provider, record, WorkspaceState.COMPLETED)
        ended = replace(record, state=WorkspaceState.COMPLETED, ended_at=SystemClock().now())
        return Completed(record=ended, committed=committed, is_removed=True)

    async def _end(self, provider: Provider, record: Record, state: WorkspaceState) -> None:
        """From the row on it counts as gone; a folder that a crash leaves is removed by the next sweep."""
        async with self._database.connection() as connection:
            await self._registry.end(connection, record.id, state)
        await provider.cleanup(record.id)
        async with self._database.connection() as connection:
            await self._registry.removed(connection, record.id)

    @asynccontextmanager
    async def _alone(self, workspace_id: WorkspaceId) -> AsyncIterator[None]:
        """One call at a time for a workspace; the node is one process."""
        lock = self._locks.setdefault(workspace_id, asyncio.Lock())
        async with lock:
            yield
