"""The paths of snapshots that were looked at last, in memory."""

from collections import OrderedDict
from collections.abc import Hashable
from typing import Final

from contextbase.ids import TreePath

__all__ = ["PathLists"]

_MOST_PATHS: Final = 300_000  # of all lists together; about 100 bytes each


class PathLists:
    """What callers with the same sight may see of a snapshot never changes: after a purge, a restore or a change of the
    rules the key is another."""

    def __init__(self) -> None:
        self._lists: OrderedDict[Hashable, list[list[TreePath]]] = OrderedDict()
        self._count = 0

    def find(self, key: Hashable) -> list[list[TreePath]] | None:
        """In portions, so that whoever goes through them can let others go on in between."""
        if key in self._lists:
            self._lists.move_to_end(key)
        return self._lists.get(key)

    def keep(self, key: Hashable, portions: list[list[TreePath]]) -> None:
        count = sum(map(len, portions))
        if key in self._lists or count > _MOST_PATHS:
            return
        self._lists[key] = portions
        self._count += count
        while self._count > _MOST_PATHS:
            _, oldest = self._lists.popitem(last=False)
            self._count -= sum(map(len, oldest))

    @property
    def most(self) -> int:
        """A longer list is not kept."""
        return _MOST_PATHS
