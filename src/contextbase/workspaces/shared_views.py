"""Read-only folders that follow the head: a thousand readers of one kind cost one mount.

<root>/views/current-<who sees the same>  a link that is flipped from one snapshot's view to the next
"""

import os
from collections.abc import Hashable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.db.database import Database
from contextbase.errors import NotFound
from contextbase.gate.service import Gate
from contextbase.identity.model import Action, Caller, Grant
from contextbase.ids import PrincipalId, ProjectId, TreePath
from contextbase.threads import in_thread
from contextbase.workspaces.machine import Machine
from contextbase.workspaces.model import View
from contextbase.workspaces.view_cache import ViewCache

__all__ = ["SharedView", "SharedViews"]

_LINK: Final = "current-"


@dataclass(frozen=True, kw_only=True, slots=True)
class SharedView:
    path: Path  # a link: open files below it stay what they were when it is flipped
    view: View


@dataclass(kw_only=True, slots=True)
class _Followed:
    project_id: ProjectId
    callers: dict[tuple[Grant, PrincipalId], Caller]  # who was shown it; the next to be asked for comes first
    sight: Hashable  # what all of them see; None: they have come apart
    policy_version: int
    view: View


class SharedViews:
    def __init__(self, *, database: Database, gate: Gate, sight: ViewCache, node: Machine) -> None:
        self._database = database
        self._gate = gate
        self._sight = sight
        self._node = node
        self._followed: dict[Path, _Followed] = {}
        self._has_begun = False

    async def open(self, caller: Caller, project_id: ProjectId) -> SharedView:
        """The project as the caller may see it, now and, a few seconds behind, from now on."""
        caller.require(Action.READ, project_id)
        async with self._database.connection() as connection:
            opened = await self._gate.opened(connection, caller, project_id)
            view = await self._sight.of_head(connection, project_id, opened)
        # With the policy's version: who is given a link later never wakes one that others have to be kept from.
        who = (str(project_id), str(opened.policy.version), repr(opened.authority.sight))
        names = (await self._node.site()).mirrors.names
        link = self._node.root / "views" / f"{_LINK}{names.name('link', *who)}"
        await self._show(link, view)
        followed = self._followed.setdefault(
            link,
            _Followed(
                project_id=project_id,
                callers={},
                sight=opened.authority.sight,
                policy_version=opened.policy.version,
                view=view,
            ),
        )
        followed.callers[caller.grant, caller.principal.id] = caller
        followed.view = view
        return SharedView(path=link, view=view)

    async def keep_up(self) -> None:
        """Let every view follow the head; the first time, clear away what an earlier process left."""
        if not self._has_begun:
            await self.begin()
            self._has_begun = True
        await self.follow()

    async def begin(self) -> None:
        """Remove what an earlier process showed: nobody would keep it at the head, or from who may see it no more."""
        links = self._node.root / "views"
        if not await in_thread(links.exists):
            return
        for link in set(await in_thread(lambda: list(links.glob(f"{_LINK}*")))) - self._followed.keys():
            await in_thread(link.unlink)
        provider = (await self._node.site()).provider
        await provider.close_other_views([followed.view for followed in self._followed.values()])

    async def follow(self) -> None:
        """Flip what has moved on; close what nobody is shown any more."""
        if not self._followed:
            return
        moved = False
        for link, followed in list(self._followed.items()):
            try:
                view = await self._next_view(followed)
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

    async def _next_view(self, followed: _Followed) -> View:
        """The head as all may see it who were shown the link: asking one of them will do while the policy stands."""
        async with self._database.connection() as connection:
            who, caller = next(iter(followed.callers.items()))
            followed.callers[who] = followed.callers.pop(who)
            opened = await self._gate.opened(connection, caller, followed.project_id)
            if (opened.authority.sight, opened.policy.version) == (followed.sight, followed.policy_version):
                return await self._sight.of_head(connection, followed.project_id, opened)
            everybody = [
                await self._gate.opened(connection, one, followed.project_id) for one in followed.callers.values()
            ]
            views = [await self._sight.at(connection, followed.project_id, one, opened.seq) for one in everybody]
        sights = {one.authority.sight for one in everybody}
        followed.sight = sights.pop() if len(sights) == 1 else None
        followed.policy_version = opened.policy.version
        all_masked = replace(views[0], masked=frozenset[TreePath]().union(*(view.masked for view in views)))
        topmost = (path for path in all_masked.masked if path.parent is None or not all_masked.hides(path.parent))
        return replace(all_masked, masked=frozenset(topmost))

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
