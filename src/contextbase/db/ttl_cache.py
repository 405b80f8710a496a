"""What the database said a moment ago: for rows that are asked for with every request and hardly ever change."""

import time
from typing import Final, Generic, TypeVar

from contextbase.lru_cache import LruCache

__all__ = ["REMEMBERED_SECONDS", "TtlCache"]

REMEMBERED_SECONDS: Final = 1.0
"""How long another server's change of such a row may go unnoticed here."""

_MOST: Final = 10_000

K = TypeVar("K")
V = TypeVar("V")


class TtlCache(Generic[K, V]):
    """Values by key, each good for a second, or for as long as is said. Whoever changes a row says `forget`."""

    def __init__(self, *, seconds: float = REMEMBERED_SECONDS) -> None:
        self._seconds = seconds
        self._values: LruCache[K, tuple[float, V]] = LruCache(_MOST)

    def get(self, key: K) -> V | None:
        until, value = self._values.get(key) or (0.0, None)
        return value if time.monotonic() < until else None

    def put(self, key: K, value: V) -> None:
        self._values.put(key, (time.monotonic() + self._seconds, value))

    def forget(self) -> None:
        self._values.clear()
