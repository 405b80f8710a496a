"""A change of a folder is a change of everything in it that the writer can see."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import TooLarge
from contextbase.gate.model import MOST_CHANGES, Change, ChangeAction
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ProjectId, TreePath
from contextbase.storage.model import Version
from contextbase.storage.tree import TreeRepository

__all__ = ["expand_folders"]

_SQL: Final = load_queries("contextbase.gate")
_PAGE: Final = MOST_CHANGES + 1
_OF_FOLDERS: Final = frozenset({ChangeAction.DELETE, ChangeAction.RENAME})


async def expand_folders(
    connection: Connection,
    tree: TreeRepository,
    project_id: ProjectId,
    authority: PathAuthority,
    changes: Sequence[Change],
) -> tuple[Change, ...]:
    """The changes, with every delete or rename of a folder spelt out, file by file, as its snapshot has them.

    What the writer cannot see stays where it is: deleting a folder never deletes a hidden child."""
    if not any(change.action in _OF_FOLDERS for change in changes):
        return tuple(changes)
    named = {change.path for change in changes}
    expanded: list[Change] = []
    for change in changes:
        if change.action not in _OF_FOLDERS or not authority.sees(change.path):
            expanded.append(change)
            continue
        visible = await _visible_below(connection, tree, project_id, authority, change)
        itself = await tree.at_path(connection, project_id, change.path, change.base) if visible else None
        # A folder that holds only what is hidden is, to this writer, none: it is told what it would be of nothing.
        if not visible or await _seen(connection, project_id, authority, [] if itself is None else [itself]):
            expanded.append(change)
        expanded += [_within(change, path) for path in visible if path not in named]
        if len(expanded) > MOST_CHANGES:
            raise TooLarge(f"The folders hold more than {MOST_CHANGES} entries together; change them one by one.")
    return tuple(expanded)


async def _visible_below(
    connection: Connection, tree: TreeRepository, project_id: ProjectId, authority: PathAuthority, change: Change
) -> list[TreePath]:
    visible: list[TreePath] = []
    after: TreePath | None = None
    while True:
        page = await tree.page(connection, project_id, change.base, below=change.path, after=after, limit=_PAGE)
        visible += await _seen(connection, project_id, authority, page)
        if len(visible) > MOST_CHANGES:
            raise TooLarge(f"{change.path} holds more than {MOST_CHANGES} entries; change its folders one by one.")
        if len(page) < _PAGE:
            return visible
        after = page[-1].path


async def _seen(
    connection: Connection, project_id: ProjectId, authority: PathAuthority, versions: Sequence[Version]
) -> list[TreePath]:
    """Where those stood that the writer may see, there and where their nodes are now."""
    if authority.sees_everything:
        return [version.path for version in versions]
    there = [version for version in versions if authority.sees(version.path)]
    heads = await connection.fetch(_SQL.node_heads, project_id, [version.node_id for version in there]) if there else []
    now = {row["node_id"] for row in heads if authority.sees(TreePath.stored(row["path"]))}
    return [version.path for version in there if version.node_id in now]


def _within(change: Change, path: TreePath) -> Change:
    if change.target is None:
        return replace(change, path=path)
    return replace(change, path=path, target=TreePath(change.target + path[len(change.path) :]), content=None)
