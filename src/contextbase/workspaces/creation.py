"""How a workspace comes to be: its row, its audit row and its folder, at the same time."""

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime

from contextbase.audit.chain import AuditExtension
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, ContextbaseError, InvalidInput
from contextbase.gate.service import Gate
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import View, WorkspaceId
from contextbase.workspaces.ports import FolderBackend
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from contextbase.workspaces.results import new_record
from contextbase.workspaces.turns import WorkspaceTurns
from contextbase.workspaces.view_cache import ViewCache

__all__ = ["WorkspaceCreation", "refuse_other"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceCreation:
    database: Database
    gate: Gate
    registry: WorkspaceRepository
    node: Machine
    sight: ViewCache
    activity: Activity
    turns: WorkspaceTurns
    _under_way: set[WorkspaceId] = field(init=False, default_factory=set)

    def is_under_way(self, workspace_id: WorkspaceId) -> bool:
        """Its folder may be there before its row."""
        return workspace_id in self._under_way

    async def new(
        self,
        acting: Caller,
        project_id: ProjectId,
        at: Seq | None,
        folder: TreePath | None,
        *,
        has_metadata: bool,
    ) -> WorkspaceRecord | None:
        """None when the agent has one already. `NotFound` if there is no such folder, and the agent may not make it."""
        provider = (await self.node.site()).provider
        remembered = None if at is not None else self.gate.last_opened(acting, project_id)
        view = None if remembered is None else self.sight.known(project_id, remembered, folder)
        if remembered is not None and view is not None:
            # A trip to the database less, if what we remember is true: the row says so, while the folder is made.
            record = new_record(acting, self.node, provider, remembered, view, has_metadata=has_metadata)
            if (made_at := await self._make(acting, provider, record, view, on_head=True)) is not None:
                return replace(record, created_at=made_at, seen_at=made_at)
        async with self.database.connection() as connection:
            opened = await self.gate.opened(connection, acting, project_id)
            if at is not None and at > opened.seq:
                raise InvalidInput(f"There is no snapshot {at}: the project's are 0 to {opened.seq}.")
            seq = opened.seq if at is None else at
            view = await self.sight.of_snapshot(connection, project_id, opened, seq)
            if folder is not None:
                view = await self.sight.of_folder(connection, view, opened.authority, folder)
        record = new_record(acting, self.node, provider, opened, view, has_metadata=has_metadata)
        made_at = await self._make(acting, provider, record, view)
        return None if made_at is None else replace(record, created_at=made_at, seen_at=made_at)

    async def _make(
        self, acting: Caller, provider: FolderBackend, record: WorkspaceRecord, view: View, *, on_head: bool = False
    ) -> datetime | None:
        """The rows and the folder at the same time; None when the agent has a workspace already, or (`on_head`) the
        head is another."""
        self._under_way.add(record.id)
        try:
            async with self.turns.alone(record.id):  # others find the row before the folder is there
                return await self._make_alone(acting, provider, record, view, on_head=on_head)
        finally:
            self._under_way.discard(record.id)

    async def _make_alone(
        self, acting: Caller, provider: FolderBackend, record: WorkspaceRecord, view: View, *, on_head: bool
    ) -> datetime | None:
        made = asyncio.create_task(provider.create_workspace(record.id, view))
        try:
            await asyncio.sleep(0)  # the folder is begun before the row is put together
            made_at = await self._insert(acting, record, on_head=on_head)
        except BaseException:
            await asyncio.gather(made, return_exceptions=True)
            with suppress(ContextbaseError):  # the database is away: the next sweep finds a row without a folder
                await self._forget(acting, record)  # a commit that was given up may have been carried out
            await provider.cleanup(record.id)
            raise
        if made_at is None:  # then it does not matter what became of the folder
            await asyncio.gather(made, return_exceptions=True)
            await provider.cleanup(record.id)
            return None
        try:
            await made
        except BaseException:
            await self._forget(acting, record)
            raise
        return made_at

    async def _insert(self, acting: Caller, record: WorkspaceRecord, *, on_head: bool) -> datetime | None:
        about, told = (record.project_id, record.id), f"made a workspace at {record.base}"
        entry = self.activity.entry(acting, record.id, "workspace.create", told)

        async def insert(connection: Connection, extension: AuditExtension) -> datetime | None:
            return await self.registry.insert_audited(connection, record, extension, on_head=on_head)

        if (made_at := await self.activity.in_one_statement(record.project_id, entry, insert)) is not None:
            return made_at
        # Others have extended the audit chain, or the agent has a workspace already: this tells.
        async with self.database.transaction() as connection:
            made_at = await self.registry.insert(connection, record, on_head=on_head)
            if made_at is not None:
                await self.activity.record(acting, about, "workspace.create", told, connection=connection)
        return made_at

    async def _forget(self, acting: Caller, record: WorkspaceRecord) -> None:
        async with self.database.transaction() as connection:
            if await self.registry.drop(connection, record.id):
                about, told = (record.project_id, record.id), "gave up a workspace whose folder could not be made"
                await self.activity.record(acting, about, "workspace.abandon", told, connection=connection)


def refuse_other(existing: WorkspaceRecord, at: Seq | None, folder: TreePath | None, *, has_metadata: bool) -> None:
    """Raise `Conflict` if the agent's workspace is not what is asked for."""
    name, first = existing.principal.name, "complete or abandon it before you make one"
    if at not in (None, existing.base):
        raise Conflict(f"{name} has a workspace on snapshot {existing.base}; {first} on snapshot {at}.")
    if folder not in (None, existing.folder):
        raise Conflict(f"{name} has a workspace of {existing.folder or 'the whole project'}; {first} of {folder}.")
    if has_metadata and not existing.has_metadata:
        raise Conflict(f"{name} has a workspace without metadata; {first} with them.")
