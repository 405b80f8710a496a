"""Values in memory, of which the least recently used make room for others."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Generic, TypeVar

__all__ = ["LruCache"]

K = TypeVar("K")
V = TypeVar("V")


class LruCache(Generic[K, V]):
    """Holds at most `most` values; with `weigh`, values that weigh at most that together. None cannot be a value."""

    def __init__(self, most: int, *, weigh: Callable[[K, V], int] = lambda _key, _value: 1) -> None:
        self._most = most
        self._weigh = weigh
        self._values: OrderedDict[K, V] = OrderedDict()
        self._weight = 0

    def get(self, key: K) -> V | None:
        value = self._values.get(key)
        if value is not None:
            self._values.move_to_end(key)
        return value

    def put(self, key: K, value: V) -> None:
        """Keep it, unless it alone is too heavy."""
        self.forget(key)
        weight = self._weigh(key, value)
        if weight > self._most:
            return
        self._values[key] = value
        self._weight += weight
        while self._weight > self._most:
            oldest, dropped = self._values.popitem(last=False)
            self._weight -= self._weigh(oldest, dropped)

    def forget(self, key: K) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._weight -= self._weigh(key, value)

    def clear(self) -> None:
        self._values.clear()
        self._weight = 0
