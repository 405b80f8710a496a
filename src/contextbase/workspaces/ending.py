"""How a workspace ends: committed and removed, or removed as it is."""

import logging
from dataclasses import dataclass, replace
from typing import Final

from contextbase.audit.chain import AuditExtension
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, MachineProblem
from contextbase.identity.model import Caller
from contextbase.ids import Seq, SystemClock
from contextbase.threads import in_thread
from contextbase.workspaces.activity import Activity
from contextbase.workspaces.admission import Admission
from contextbase.workspaces.checkpoints import Checkpoints, Committed, Wish
from contextbase.workspaces.editor import left_in
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.ports import FolderBackend, Occupants
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository, WorkspaceState
from contextbase.workspaces.results import Completed

__all__ = ["WorkspaceEnding"]

_log = logging.getLogger(__name__)

_ENDED: Final = {WorkspaceState.COMPLETED: "workspace.complete", WorkspaceState.ABANDONED: "workspace.abandon"}


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceEnding:
    """Nobody else may be at the workspace meanwhile."""

    database: Database
    registry: WorkspaceRepository
    node: Machine
    checkpoints: Checkpoints
    admission: Admission
    occupants: Occupants
    activity: Activity

    async def complete(self, acting: Caller, record: WorkspaceRecord, wish: Wish, *, discard: bool) -> Completed:
        """Commit, then remove the folder, unless it holds what could not be committed: then it is closed still."""
        provider = (await self.node.site()).provider
        kept_because = [*await self._closed(provider, record)]
        record, committed = await self.checkpoints.make(acting, record, wish, last=not kept_because)
        if not discard:
            if committed.refused and not kept_because:
                kept_because += await self._written_since(acting, provider, record, committed)
            kept_because += [reported.reason for reported in committed.reported]
            kept_because += [
                f"{one.answered.change.path} was refused, and could not be moved to .contextbase/refused/."
                for one in committed.refused
                if one.is_where_it_was
            ]
            kept_because += await in_thread(left_in, await provider.work_folder(record.id), self.node.owner)
        if kept_because:
            return Completed(
                record=record, committed=committed, is_removed=False, kept_because=tuple(dict.fromkeys(kept_because))
            )
        told, state = f"completed a workspace: {committed.told}", WorkspaceState.COMPLETED
        await self._end(acting, provider, record, state, told=told, seq=committed.seq)
        ended = replace(record, state=WorkspaceState.COMPLETED, ended_at=SystemClock().now())
        return Completed(record=ended, committed=committed, is_removed=True)

    async def abandon(self, acting: Caller, record: WorkspaceRecord) -> WorkspaceRecord:
        """Remove the folder and what is in it for good; `Conflict` while a process is in it."""
        provider = (await self.node.site()).provider
        await self.occupants.leave(record.id)
        await provider.close_workspace(record.id)
        await self._end(acting, provider, record, WorkspaceState.ABANDONED, told="abandoned a workspace")
        return replace(record, state=WorkspaceState.ABANDONED)

    async def _closed(self, provider: FolderBackend, record: WorkspaceRecord) -> tuple[str, ...]:
        """Why it is not, if a process keeps it open."""
        try:
            await self.occupants.leave(record.id)
            await provider.close_workspace(record.id)
        except Conflict as busy:
            return (busy.message,)
        return ()

    async def _written_since(
        self, acting: Caller, provider: FolderBackend, record: WorkspaceRecord, committed: Committed
    ) -> tuple[str, ...]:
        """The folder was shown again, to give back what stood where something was refused: who wrote to it then is not
        to lose that."""
        if busy := await self._closed(provider, record):
            return busy
        look = await self.checkpoints.look(await self.admission.found(acting, record.project_id))
        refused = {one.answered.change.path for one in committed.refused}
        written = (change.path for change in look.changes if change.path not in refused)
        return tuple(f"{path} was written while the workspace was completed; complete it again." for path in written)

    async def _end(
        self,
        acting: Caller,
        provider: FolderBackend,
        record: WorkspaceRecord,
        state: WorkspaceState,
        *,
        told: str,
        seq: Seq | None = None,
    ) -> None:
        """From the row on it counts as gone; a folder that is left is removed by the next sweep."""
        await self._mark(acting, record, state, told=told, seq=seq)
        try:
            await provider.cleanup(record.id)
        except (Conflict, MachineProblem, OSError) as error:
            extra = {"workspace_id": str(record.id), "error": str(error)}
            _log.warning("the folder of a workspace that has ended is not removed yet", extra=extra)
            return
        async with self.database.connection() as connection:
            await self.registry.removed(connection, record.id)

    async def _mark(
        self, acting: Caller, record: WorkspaceRecord, state: WorkspaceState, *, told: str, seq: Seq | None
    ) -> None:
        entry = self.activity.entry(acting, record.id, _ENDED[state], told, seq=seq)

        async def end(connection: Connection, extension: AuditExtension) -> bool | None:
            return await self.registry.end_audited(connection, record.id, state, extension) or None

        if await self.activity.in_one_statement(record.project_id, entry, end):
            return
        async with self.database.transaction() as connection:
            if await self.registry.end(connection, record.id, state):
                about = (record.project_id, record.id)
                await self.activity.record(acting, about, _ENDED[state], told, seq=seq, connection=connection)
