"""The newest entries of a stream, in memory."""

from bisect import bisect_right
from typing import Generic, Protocol, TypeVar

__all__ = ["Positioned", "Tail"]


class Positioned(Protocol):
    @property
    def position(self) -> int: ...


Entry = TypeVar("Entry", bound=Positioned)


class Tail(Generic[Entry]):
    """All entries after a position, in order; the oldest are let go when there are many."""

    def __init__(self, after: int) -> None:
        self.after = after
        self.entries: list[Entry] = []

    def since(self, position: int, limit: int) -> list[Entry]:
        if not self.entries or self.entries[-1].position <= position:
            return []
        start = bisect_right(self.entries, position, key=_position)
        return self.entries[start : start + limit]

    def drop_first(self, count: int) -> None:
        if count > 0:
            self.after = self.entries[count - 1].position
            del self.entries[:count]


def _position(entry: Positioned) -> int:
    return entry.position
