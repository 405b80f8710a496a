"""Whole trees that were read last, in memory."""

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from contextbase.ids import ProjectId, Seq
from contextbase.lru_cache import LruCache
from contextbase.reads.model import SnapshotEntry

__all__ = ["TreeCache"]

_MOST_ENTRIES: Final = 100_000  # about 100 MB
_LARGEST_TREE: Final = 20_000
_Snapshot = tuple[ProjectId, UUID, Seq, int]


class TreeCache:
    """The whole trees that were read last, without contents. A snapshot is a number: what it holds never changes."""

    def __init__(self) -> None:
        self._trees: LruCache[_Snapshot, tuple[SnapshotEntry, ...]] = LruCache(
            _MOST_ENTRIES, weigh=lambda _, entries: len(entries)
        )

    def find(self, snapshot: _Snapshot) -> tuple[SnapshotEntry, ...] | None:
        return self._trees.get(snapshot)

    def keep(self, snapshot: _Snapshot, entries: Sequence[SnapshotEntry]) -> None:
        if len(entries) <= _LARGEST_TREE:
            self._trees.put(snapshot, tuple(entries))
