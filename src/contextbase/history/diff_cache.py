"""Comparisons that were made before: of the same two contents at the same places they never change."""

from typing import Final

from contextbase.compare import FileDiff
from contextbase.history.changes import NodePair
from contextbase.lru_cache import LruCache
from contextbase.storage.model import Version

__all__ = ["FinishedDiffs"]

MOST_BYTES: Final = 32 << 20
_OVERHEAD: Final = 2000  # bytes of a diff without its lines

_State = tuple[object, ...] | None
_Key = tuple[_State, _State, int]


class FinishedDiffs:
    """Those that were used last. Only for who has the contents: what was purged must not live on here."""

    def __init__(self) -> None:
        self._diffs: LruCache[_Key, FileDiff] = LruCache(MOST_BYTES, weigh=lambda _, diff: _weight(diff))

    def find(self, pair: NodePair, context: int) -> FileDiff | None:
        return self._diffs.get(_key(pair, context))

    def keep(self, pair: NodePair, context: int, diff: FileDiff) -> None:
        if not diff.notes:  # what was not compared for want of time may be, the next time
            self._diffs.put(_key(pair, context), diff)


def _key(pair: NodePair, context: int) -> _Key:
    return _state(pair.old), _state(pair.new), context


def _state(version: Version | None) -> _State:
    if version is None:
        return None
    return version.path, version.kind, version.content_hash, version.executable, version.mime


def _weight(diff: FileDiff) -> int:
    hunks = [*diff.hunks, *(hunk for cell in diff.cells for hunk in cell.hunks)]
    lines = sum(len(line) + 40 for hunk in hunks for line in hunk.lines)
    values = sum(len(value.text) + 200 for change in diff.changes for value in (change.old, change.new) if value)
    return _OVERHEAD + lines + values
