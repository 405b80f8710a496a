"""Renames that are known, not guessed: the file that is new here is the very one that is gone there."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from contextbase.ids import TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.model import ChangeKind, DetectedChange

__all__ = ["with_renames"]


def with_renames(
    changes: Mapping[TreePath, DetectedChange],
    origins: Mapping[TreePath, bytes],
    identity: Callable[[TreePath], bytes | None],
) -> list[DetectedChange]:
    """Join each created file with the deletion of the file it was, by what the file system knows it by: `origins` has
    this of the created ones.

    A file put in the place of another is no rename: the node that stood there lives on with new content.
    """
    if not origins:
        return list(changes.values())
    gone = {
        known: change.path
        for change in changes.values()
        if change.kind is ChangeKind.DELETED and change.before is Kind.FILE
        if (known := identity(change.path)) is not None
    }
    result = dict(changes)
    for path in sorted(origins):
        source = gone.pop(origins[path], None)
        if source is not None:
            result[path] = replace(changes[path], kind=ChangeKind.RENAMED, renamed_from=source)
            del result[source]
    return list(result.values())
