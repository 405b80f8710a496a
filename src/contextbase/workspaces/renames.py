"""Renames that are known, not guessed: the file that is new here is the very one that is gone there."""

from collections.abc import Callable, Mapping
from dataclasses import replace

from contextbase.ids import TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.model import DetectedChange, FolderChangeKind

__all__ = ["with_renames"]


def with_renames(
    changes: Mapping[TreePath, DetectedChange],
    sources: Mapping[TreePath, TreePath],
    origins: Mapping[TreePath, bytes],
    namesakes: Mapping[TreePath, TreePath],
    identity: Callable[[TreePath], bytes | None],
) -> list[DetectedChange]:
    """Join each created file or link with the deletion of the one it was. `sources` names that one, for what came with
    its folder untouched; `origins` is what the file system knows it by. Another file of the same name (`namesakes`) in
    a folder that was renamed has taken the old one's place there, as editors do it.

    A file put in the place of another is no rename: the node that stood there lives on with new content.
    """
    result = dict(changes)

    def join(path: TreePath, source: TreePath) -> None:
        change = result.get(path)  # None: it could not be read
        if change is not None and change.renamed_from is None and _is_gone(result.get(source)):
            result[path] = replace(change, kind=FolderChangeKind.RENAMED, renamed_from=source)
            del result[source]

    for path, source in sources.items():
        join(path, source)
    if origins:
        gone = {
            known: change.path
            for change in result.values()
            if _is_gone(change)
            if (known := identity(change.path)) is not None
        }
        for path in sorted(origins):
            if origins[path] in gone:
                join(path, gone.pop(origins[path]))
    for path, source in namesakes.items():
        join(path, source)
    return list(result.values())


def _is_gone(change: DetectedChange | None) -> bool:
    return change is not None and change.kind is FolderChangeKind.DELETED and change.before is not Kind.DIRECTORY
