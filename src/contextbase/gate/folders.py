"""A change of a folder is a change of everything in it that the writer can see; what others add to a folder that is
renamed goes with it."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Final

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import InvalidPath, TooLarge
from contextbase.gate.access import refusal_of
from contextbase.gate.batch import Submitted
from contextbase.gate.model import MOST_CHANGES, ChangeAction, RequestedChange
from contextbase.gate.repository import GateRepository
from contextbase.gate.trusted import MovedFolder
from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.identity.levels import PathAuthority
from contextbase.ids import NodeId, ProjectId, TreePath
from contextbase.storage.model import Version
from contextbase.storage.tree import TreeRepository

__all__ = ["brought_along", "expand_folders", "may_name_folders"]

_SQL: Final = load_queries("contextbase.gate")
_PAGE: Final = MOST_CHANGES + 1
_OF_FOLDERS: Final = frozenset({ChangeAction.DELETE, ChangeAction.RENAME})


def may_name_folders(changes: Sequence[RequestedChange]) -> bool:
    """Whether `expand_folders` has to look for what is in them."""
    return any(change.action in _OF_FOLDERS for change in changes)


async def expand_folders(
    connection: Connection,
    repository: TreeRepository,
    project_id: ProjectId,
    authority: PathAuthority,
    changes: Sequence[RequestedChange],
    *,
    tree: WorkingTree,
) -> tuple[RequestedChange, ...]:
    """The changes, with every delete or rename of a folder spelt out, file by file, as its snapshot has them.

    What the writer cannot see, where it stood or where it stands in `tree`, stays where it is: deleting a folder never
    deletes a hidden child."""
    if not may_name_folders(changes):
        return tuple(changes)
    sight = _Sight(connection=connection, project_id=project_id, authority=authority, tree=tree)
    named = {change.path for change in changes}
    expanded: list[RequestedChange] = []
    for change in changes:
        if change.action not in _OF_FOLDERS or not authority.sees(change.path):
            expanded.append(change)
            continue
        visible = await _visible_below(repository, sight, change)
        itself = await repository.at_path(connection, project_id, change.path, change.base) if visible else None
        # A folder that holds only what is hidden is, to this writer, none: it is told what it would be of nothing.
        if not visible or await sight.paths([] if itself is None else [itself]):
            expanded.append(change)
        expanded += [_within(change, path) for path in visible if path not in named]
        if len(expanded) > MOST_CHANGES:
            raise TooLarge(f"The folders hold more than {MOST_CHANGES} entries together; change them one by one.")
    return tuple(expanded)


async def brought_along(
    connection: Connection,
    repository: GateRepository,
    tree: WorkingTree,
    authority: PathAuthority,
    submitted: Submitted,
) -> tuple[RequestedChange, ...]:
    """The request's changes, and a rename of everything that others have put since into the folders it moves. What the
    writer may not move, or would put in another's place, stays where it is."""
    request = submitted.request
    named = {place for change in request.changes for place in (change.path, change.target)}
    wanted: dict[TreePath, RequestedChange] = {}  # by target
    for folder in sorted(submitted.terms.moved, key=lambda moved: len(moved.path), reverse=True):  # inner folders first
        for live in await repository.came_since(connection, request.project_id, tree, folder):
            change = _along(folder, live, authority)
            if change is None or change.target is None or {change.path, change.target} & named:
                continue
            named |= {change.path, change.target}
            wanted[change.target] = change
    await repository.learn_heads(connection, request.project_id, tree, set(wanted))
    free = [change for target, change in wanted.items() if tree.at(target) is None]
    return (*request.changes, *free[: MOST_CHANGES - len(request.changes)])


def _along(folder: MovedFolder, live: Live, authority: PathAuthority) -> RequestedChange | None:
    try:
        target = TreePath(folder.target + live.path[len(folder.path) :])
    except InvalidPath:
        return None
    change = RequestedChange(action=ChangeAction.RENAME, path=live.path, target=target, base=live.seq)
    refusal = refusal_of(change, live, authority.level(live.path), authority)
    return change if refusal is None else None


async def _visible_below(repository: TreeRepository, sight: "_Sight", change: RequestedChange) -> list[TreePath]:
    visible: list[TreePath] = []
    after: TreePath | None = None
    while True:
        page = await repository.page(
            sight.connection, sight.project_id, change.base, below=change.path, after=after, limit=_PAGE
        )
        visible += await sight.paths(page)
        if len(visible) > MOST_CHANGES:
            raise TooLarge(f"{change.path} holds more than {MOST_CHANGES} entries; change its folders one by one.")
        if len(page) < _PAGE:
            return visible
        after = page[-1].path


@dataclass(frozen=True, kw_only=True, slots=True)
class _Sight:
    """What one writer may see."""

    connection: Connection
    project_id: ProjectId
    authority: PathAuthority
    tree: WorkingTree  # what it knows is newer than what the database has

    async def paths(self, versions: Sequence[Version]) -> list[TreePath]:
        """Where those stood that the writer may see, there and where their nodes are now."""
        if self.authority.sees_everything:
            return [version.path for version in versions]
        there = [version for version in versions if self.authority.sees(version.path)]
        now = {live.node_id: live.path for v in there if (live := self.tree.node(v.node_id)) is not None}
        unknown = [version.node_id for version in there if version.node_id not in now]
        if unknown:
            rows = await self.connection.fetch(_SQL.node_heads, self.project_id, unknown)
            now |= {NodeId(row["node_id"]): TreePath.stored(row["path"]) for row in rows}
        return [v.path for v in there if v.node_id in now and self.authority.shows(v.path, now[v.node_id])]


def _within(change: RequestedChange, path: TreePath) -> RequestedChange:
    if change.target is None:
        return replace(change, path=path)
    return replace(change, path=path, target=TreePath(change.target + path[len(change.path) :]), content=None)
