"""A change of a folder is a change of everything in it that the writer can see."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from contextbase.db.database import Connection
from contextbase.errors import TooLarge
from contextbase.gate.model import MOST_CHANGES, Change, ChangeAction
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ProjectId, TreePath
from contextbase.storage.tree import TreeRepository

__all__ = ["expand_folders"]

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
        # A folder that holds only what is hidden is, to this writer, none: it is told what it would be of nothing.
        if not visible or await tree.at_path(connection, project_id, change.path, change.base) is not None:
            expanded.append(change)
        expanded += [_within(change, path) for path in visible if path not in named]
    return tuple(expanded)


async def _visible_below(
    connection: Connection, tree: TreeRepository, project_id: ProjectId, authority: PathAuthority, change: Change
) -> list[TreePath]:
    visible: list[TreePath] = []
    after: TreePath | None = None
    while True:
        page = await tree.page(connection, project_id, change.base, below=change.path, after=after, limit=_PAGE)
        visible += [version.path for version in page if authority.sees(version.path)]
        if len(visible) > MOST_CHANGES:
            raise TooLarge(f"{change.path} holds more than {MOST_CHANGES} entries; change its folders one by one.")
        if len(page) < _PAGE:
            return visible
        after = page[-1].path


def _within(change: Change, path: TreePath) -> Change:
    if change.target is None:
        return replace(change, path=path)
    return replace(change, path=path, target=TreePath(change.target + path[len(change.path) :]), content=None)
