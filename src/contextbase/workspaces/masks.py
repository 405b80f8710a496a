"""What of a snapshot one principal may not see. Pure."""

from collections.abc import Callable, Iterable

from contextbase.ids import TreePath

__all__ = ["masked_paths"]


def masked_paths(paths: Iterable[TreePath], sees: Callable[[TreePath], bool]) -> frozenset[TreePath]:
    """The topmost paths to hide, given all nodes of a snapshot.

    A folder in which nothing may be seen is hidden as one: its name alone would tell. It comes back, empty, only if it
    is a node that may be seen.
    """
    hidden: set[TreePath] = set()
    seen: set[TreePath | None] = {None}
    for path in paths:
        if not sees(path):
            hidden.add(path)
            continue
        place: TreePath | None = path
        while place not in seen:
            seen.add(place)
            place = place.parent if place is not None else None
    return frozenset(_topmost(path, seen) for path in hidden if path not in seen)


def _topmost(path: TreePath, seen: set[TreePath | None]) -> TreePath:
    parent = path.parent
    while parent is not None and parent not in seen:
        path, parent = parent, parent.parent
    return path
