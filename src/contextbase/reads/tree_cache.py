"""Whole trees that were read last, in memory."""

from collections import OrderedDict
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from contextbase.ids import ProjectId, Seq
from contextbase.reads.model import SnapshotEntry

__all__ = ["TreeCache"]

MOST_ENTRIES: Final = 100_000  # about 100 MB
LARGEST_TREE: Final = 20_000
_Snapshot = tuple[ProjectId, UUID, Seq, int]


class TreeCache:
    """The whole trees that were read last, without contents. A snapshot is a number: what it holds never changes."""

    def __init__(self) -> None:
        self._trees: OrderedDict[_Snapshot, tuple[SnapshotEntry, ...]] = OrderedDict()
        self._entries = 0

    def find(self, snapshot: _Snapshot) -> tuple[SnapshotEntry, ...] | None:
        if snapshot in self._trees:
            self._trees.move_to_end(snapshot)
        return self._trees.get(snapshot)

    def keep(self, snapshot: _Snapshot, entries: Sequence[SnapshotEntry]) -> None:
        if snapshot in self._trees or len(entries) > LARGEST_TREE:
            return
        self._trees[snapshot] = tuple(entries)
        self._entries += len(entries)
        while self._entries > MOST_ENTRIES:
            _, oldest = self._trees.popitem(last=False)
            self._entries -= len(oldest)
