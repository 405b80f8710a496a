"""Read-only folders that follow the head: a thousand readers of one kind cost one mount.

<root>/views/current-<who sees the same>  a link that is flipped from one snapshot's view to the next
"""

import os
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from uuid import uuid4

from contextbase.db.database import Database
from contextbase.errors import NotFound
from contextbase.gate.service import Gate
from contextbase.identity.model import Action, Caller
from contextbase.ids import ProjectId
from contextbase.storage.blobs.waiting import in_thread
from contextbase.workspaces.model import View
from contextbase.workspaces.node import Node
from contextbase.workspaces.sight import Sight

__all__ = ["SharedView", "SharedViews"]


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedView:
    path: Path  # a link: open files below it stay what they were when it is flipped
    view: View


@dataclass(kw_only=True, slots=True)
class _Followed:
    caller: Caller  # the last of those who see the same
    project_id: ProjectId
    view: View


class SharedViews:
    def __init__(self, *, database: Database, gate: Gate, sight: Sight, node: Node) -> None:
        self._database = database
        self._gate = gate
        self._sight = sight
        self._node = node
        self._followed: dict[Path, _Followed] = {}

    async def open(self, caller: Caller, project_id: ProjectId) -> SharedView:
        """The project as the caller may see it, now and, a few seconds behind, from now on."""
        caller.require(Action.READ, project_id)
        async with self._database.connection() as connection:
            opened = await self._gate.opened(connection, caller, project_id)
            view = await self._sight.of_head(connection, project_id, opened)
        who = f"{project_id}\0{opened.authority.sight!r}"
        link = self._node.root / "views" / f"current-{sha256(who.encode()).hexdigest()[:32]}"
        await self._show(link, view)
        self._followed[link] = _Followed(caller=caller, project_id=project_id, view=view)
        return SharedView(path=link, view=view)

    async def follow(self) -> None:
        """Flip what has moved on; close what nobody is shown any more."""
        if not self._followed:
            return
        moved = False
        for link, followed in list(self._followed.items()):
            try:
                async with self._database.connection() as connection:
                    opened = await self._gate.opened(connection, followed.caller, followed.project_id)
                    view = await self._sight.of_head(connection, followed.project_id, opened)
            except NotFound:  # the project is gone
                self._followed.pop(link, None)
                continue
            if view != followed.view:
                await self._show(link, view)
                followed.view = view
                moved = True
        if moved:
            provider = (await self._node.site()).provider
            await provider.close_other_views([followed.view for followed in self._followed.values()])

    async def _show(self, link: Path, view: View) -> None:
        provider = (await self._node.site()).provider
        target = await provider.open_view(view)
        await in_thread(_flip, link, target.name)


def _flip(link: Path, target: str) -> None:
    """At no moment is there no link."""
    try:
        if link.readlink() == Path(target):
            return
    except FileNotFoundError:
        pass
    draft = link.with_name(f".{uuid4().hex}")
    os.symlink(target, draft)  # noqa: PTH211 - relative to the link's own folder
    draft.rename(link)
