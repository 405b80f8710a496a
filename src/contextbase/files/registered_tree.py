"""What a workspace holds as far as it was told: what it was given, and every operation since. Pure.

What stands in its folder and differs from this was done by somebody who did not tell.
"""

from collections.abc import Iterable, Mapping
from typing import Any

from contextbase.files.file_tree import Change, FileLeaf, FolderNode, Mark, changed
from contextbase.files.model import FileAction
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind

__all__ = ["RegisteredTree"]


class RegisteredTree:
    def __init__(self, given: FolderNode) -> None:
        self.tree = given
        self.number = 0  # of the last operation in it
        self._hashes: dict[str, ContentHash] = {}
        self._renames: list[tuple[str, str]] = []  # target and source, in order

    def replay(self, rows: Iterable[Mapping[str, Any]]) -> None:
        """Operations in order."""
        waiting: dict[str, Change] = {}
        above: set[str] = set()  # the folders of those
        for row in rows:
            self.number = row["number"]
            action, path = FileAction(row["action"]), row["path"]
            if action is FileAction.SYNC:
                continue
            if action is FileAction.RENAME or path in waiting or path in above:  # now their order counts
                self.tree = changed(self.tree, waiting)
                waiting, above = {}, set()
            if action is FileAction.RENAME:
                self._move(row["previous_path"], path)
            self._hashes.pop(path, None)
            if row["new_hash"] is not None:
                self._hashes[path] = ContentHash(row["new_hash"])
            change = _change(row)
            if change is not None:
                waiting[path] = change
                above.update(TreePath.stored(path).folders)
            if change is Mark.GONE:
                waiting |= _left_standing(path)
        self.tree = changed(self.tree, waiting)

    def hash_of(self, path: str) -> ContentHash | None:
        """Of a file that an operation wrote; None: it is as it was given, or not there."""
        return self._hashes.get(path)

    def given_as(self, path: str) -> TreePath:
        """Where a file that is as it was given stood in what was given."""
        for target, source in reversed(self._renames):
            if path == target or path.startswith(f"{target}/"):
                path = source + path[len(target) :]
        return TreePath.stored(path)

    def _move(self, source: str, target: str) -> None:
        found = self.tree.leaf(source) or self.tree.folder(source)
        changes: dict[str, Change] = {source: Mark.GONE, **_left_standing(source)}
        if found is not None:
            changes[target] = found
        self.tree = changed(self.tree, changes)
        self._renames.append((target, source))
        moved = {path: name for path, name in self._hashes.items() if path == source or path.startswith(f"{source}/")}
        for path, name in moved.items():
            del self._hashes[path]
            self._hashes[target + path[len(source) :]] = name


def _left_standing(path: str) -> dict[str, Change]:
    """The folder of what is gone: on a disk it stays, also with nothing in it."""
    parent, _, _ = path.rpartition("/")
    return {parent: Mark.STANDS} if parent else {}


def _change(row: Mapping[str, Any]) -> Change | None:
    """None: it is told by something else, as a renamed folder is by where it was."""
    kind = Kind(row["kind"])
    if kind is Kind.DELETED:
        return Mark.GONE
    if kind is Kind.DIRECTORY:
        return None if row["action"] == FileAction.RENAME else Mark.STANDS
    return FileLeaf(kind, row["size"], row["modified_ns"], "", row["executable"], row["stamp"])
