"""Which workspace a caller means, and whether it may still be worked with."""

from contextlib import suppress
from dataclasses import dataclass

from contextbase.db.database import Database
from contextbase.errors import Conflict, Forbidden, HeldElsewhere, NotFound
from contextbase.gate.service import Gate
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId, TreePath
from contextbase.machines.placement import Placement
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.ports import Occupants
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository, WorkspaceState
from contextbase.workspaces.view_cache import ViewCache, hides_more

__all__ = ["Admission"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Admission:
    database: Database
    gate: Gate
    registry: WorkspaceRepository
    node: Machine
    sight: ViewCache
    occupants: Occupants
    placement: Placement

    async def last(self, acting: Caller, project_id: ProjectId) -> WorkspaceRecord:
        """The acting agent's newest workspace, whether it is open or ended."""
        acting.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            record = await self.registry.last_one(connection, project_id, acting.principal.id)
        if record is None:
            raise NotFound(f"{acting.principal.name} has no workspace in this project; create one.")
        return record

    async def found(self, acting: Caller, project_id: ProjectId) -> WorkspaceRecord:
        """The acting agent's open workspace, if it is on this node."""
        return self.open_here(acting, await self.found_anywhere(acting, project_id))

    def open_here(self, acting: Caller, record: WorkspaceRecord | None) -> WorkspaceRecord:
        """The acting agent's workspace, if it is open, and on this node."""
        if record is None or record.state is not WorkspaceState.OPEN:
            raise NotFound(f"{acting.principal.name} has no open workspace in this project; create one.")
        self.refuse_elsewhere(record)
        return record

    async def found_anywhere(self, acting: Caller, project_id: ProjectId) -> WorkspaceRecord | None:
        """The acting agent's open workspace, whichever machine has it."""
        acting.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            return await self.registry.open_one(connection, project_id, acting.principal.id)

    def refuse_elsewhere(self, record: WorkspaceRecord) -> None:
        """Raise `HeldElsewhere` unless it is on this machine."""
        if not self.node.holds(record.node):
            raise HeldElsewhere(
                f"The workspace of {record.principal.name} is on the machine {record.node}, and this is "
                f"{self.node.name}; send the request there.",
                machine=record.node,
            )

    @property
    def makes_here(self) -> bool:
        """Whether new workspaces are made here, without asking."""
        return self.placement.is_here

    async def refuse_to_make(self, acting: Caller | None, project_id: ProjectId) -> None:
        """Raise `HeldElsewhere` if the agent's workspace is on another machine, or is to be made there. `acting`: None
        for an agent that does not exist yet."""
        if acting is not None:
            async with self.database.connection() as connection:
                record = await self.registry.open_one(connection, project_id, acting.principal.id)
            if record is not None:
                self.refuse_elsewhere(record)
                return
        await self.refuse_to_be_chosen()

    async def refuse_to_be_chosen(self) -> None:
        """Raise `HeldElsewhere` if another machine is to do what any machine could."""
        if self.placement.is_here:
            return
        if not self.node.holds(chosen := await self.placement.choose()):
            raise HeldElsewhere(f"The machine {chosen} was chosen for this; send the request there.", machine=chosen)

    async def refuse_narrowed(self, acting: Caller, record: WorkspaceRecord) -> None:
        """What may be seen no more is not shown again, although the folder was made when it could be."""
        async with self.database.connection() as connection:
            opened = await self.gate.opened(connection, acting, record.project_id)
            if opened.epoch != record.epoch or opened.policy.version == record.policy_version:
                return
            whole = await self.sight.at(connection, record.project_id, opened, record.base)
            held = await self.registry.held(connection, record.id) if record.has_held else {}
        provider = (await self.node.site()).provider
        then = (await provider.open_workspace(record.id)).view
        came_since = (record.paths.in_project(path) for path, one in held.items() if one.content is not None)
        is_hidden = record.folder is not None and whole.hides(record.folder)
        now = whole.within(record.folder)
        if not is_hidden and not hides_more(now.masked, then) and all(map(opened.authority.sees, came_since)):
            return
        with suppress(Conflict):  # a process is in it: it sees what it saw, until it ends
            await self.occupants.leave(record.id)
            await provider.close_workspace(record.id)
        raise Forbidden(
            "What you may see in this project was narrowed since the workspace was made. Its changes can still be "
            "committed: complete or abandon it, then create a new one. Nothing is lost: the folder is as it was."
        )

    async def refuse_narrower(self, acting: Caller, record: WorkspaceRecord) -> None:
        """A token for one folder does not get a workspace that was made with one for more: what it shows, and what the
        agent has made in it since, may lie elsewhere."""
        prefix = acting.grant.path_prefix
        if prefix is None or await self._is_within(record, prefix):
            return
        raise Forbidden(
            f"This {acting.grant.source} is for {prefix}, and the workspace was made with a token for more; use that "
            "one, or complete the workspace first."
        )

    async def _is_within(self, record: WorkspaceRecord, prefix: TreePath) -> bool:
        if record.scope is not None:
            return record.scope == prefix or TreePath.stored(record.scope).is_below(prefix)
        if record.state is not WorkspaceState.OPEN:
            return False
        # Made before scopes were noted: what it shows is all there is to go by.
        provider = (await self.node.site()).provider
        shown = (await provider.open_workspace(record.id)).view
        async with self.database.connection() as connection:
            masked = await self.sight.masked_around(connection, shown.snapshot, prefix)
        return not hides_more(masked, shown)
