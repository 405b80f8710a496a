"""Keeps folders and rows in step: after a crash or reboot, and as time goes by.

An open workspace gets its folder back. The folder of one that ended is removed. A folder that no row knows is reported,
and removed only when there is no work in it. Layers that nothing stands on go when room is wanted.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from contextbase.db.database import Database
from contextbase.errors import Conflict, Damaged, MachineProblem, NotFound
from contextbase.threads import in_thread
from contextbase.workspaces.editor import left_in
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import WorkspaceId
from contextbase.workspaces.ports import FolderBackend
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository, WorkspaceState
from contextbase.workspaces.service import WorkspaceService

__all__ = ["Swept", "WorkspaceUpkeep"]

_log = logging.getLogger(__name__)


@dataclass(kw_only=True, slots=True)
class Swept:
    """What one sweep found."""

    opened: int = 0
    removed: int = 0
    lost: int = 0
    orphans: tuple[WorkspaceId, ...] = ()  # with work in them that no row knows
    busy: int = 0  # ended, but a process is still in the folder
    failed: int = 0  # could be neither shown nor removed now


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceUpkeep:
    database: Database
    registry: WorkspaceRepository
    node: Machine
    workspaces: WorkspaceService
    mirror_max_bytes: int

    async def sweep(self) -> Swept:
        swept = Swept()
        async with self.database.connection() as connection:
            records = await self.registry.with_folder(connection, self.node.name)
        if not records and not self.node.root.exists():
            return swept  # nobody has used a workspace here
        site = await self.node.site()
        for record in records:
            with _troubles_told(record.id, swept):
                await self._keep(site.provider, record, swept)
        await self._look_for_orphans(site.provider, {record.id for record in records}, swept)
        await site.mirrors.evict(cap=self.mirror_max_bytes)
        return swept

    async def _keep(self, provider: FolderBackend, record: WorkspaceRecord, swept: Swept) -> None:
        if record.provider != provider.name:
            _log.warning(
                "a workspace was made in another way than this server makes them now; set workspace_provider back",
                extra={"workspace_id": str(record.id), "provider": record.provider},
            )
        elif record.state is WorkspaceState.OPEN:
            async with self.workspaces.alone(record.id):
                await self._reopen(provider, record, swept)
        elif record.state is not WorkspaceState.LOST:
            await self._remove(provider, record, swept)

    async def _reopen(self, provider: FolderBackend, record: WorkspaceRecord, swept: Swept) -> None:
        if self.workspaces.is_being_made(record.id):
            return
        try:
            await provider.open_workspace(record.id)
            swept.opened += 1
        except NotFound:
            async with self.database.connection() as connection:
                if not await self.registry.end(connection, record.id, WorkspaceState.LOST):
                    return  # another call has ended it since
            is_gone = await provider.remove_unfinished(record.id)
            extra = {"workspace_id": str(record.id), "path": str(await provider.work_folder(record.id))}
            told = "was never finished, or is gone" if is_gone else "cannot be shown again; what is left of it is kept"
            _log.error(f"the folder of an open workspace {told}", extra=extra)
            if is_gone:
                async with self.database.connection() as connection:
                    await self.registry.removed(connection, record.id)
            swept.lost += 1

    async def _remove(self, provider: FolderBackend, record: WorkspaceRecord, swept: Swept) -> None:
        try:
            await provider.cleanup(record.id)
        except Conflict:
            swept.busy += 1
            return
        async with self.database.connection() as connection:
            await self.registry.removed(connection, record.id)
        swept.removed += 1

    async def _look_for_orphans(self, provider: FolderBackend, known: set[WorkspaceId], swept: Swept) -> None:
        for workspace_id in await provider.workspaces():
            if workspace_id in known or self.workspaces.is_being_made(workspace_id):
                continue
            async with self.database.connection() as connection:
                if await self.registry.has_folder(connection, workspace_id):
                    continue  # made since the sweep began
            with _troubles_told(workspace_id, swept):
                await self._settle_orphan(provider, workspace_id, swept)

    async def _settle_orphan(self, provider: FolderBackend, workspace_id: WorkspaceId, swept: Swept) -> None:
        try:
            removed = await self._remove_if_empty(provider, workspace_id)
        except Conflict:
            swept.busy += 1
            return
        if removed:
            swept.removed += 1
            return
        extra = {"workspace_id": str(workspace_id), "path": str(await provider.work_folder(workspace_id))}
        _log.warning("a folder with work in it belongs to no workspace; it is kept", extra=extra)
        swept.orphans += (workspace_id,)

    async def _remove_if_empty(self, provider: FolderBackend, workspace_id: WorkspaceId) -> bool:
        work = await provider.work_folder(workspace_id)
        if not await in_thread(work.exists):  # a crash came in the middle of removing it: nothing is left to look at
            await provider.cleanup(workspace_id)
            return True
        try:
            found = await provider.detect_changes(workspace_id)
        except NotFound:
            return await provider.remove_unfinished(workspace_id)
        left = await in_thread(left_in, work, self.node.owner)
        if found.changes or found.reported or left:
            return False
        await provider.cleanup(workspace_id)
        return True


@contextmanager
def _troubles_told(workspace_id: WorkspaceId, swept: Swept) -> Iterator[None]:
    """One folder in trouble must not leave those after it unattended, sweep after sweep."""
    try:
        yield
    except (Conflict, Damaged, MachineProblem, OSError) as error:
        swept.failed += 1
        _log.error(
            "a workspace could not be looked after", extra={"workspace_id": str(workspace_id), "error": str(error)}
        )
