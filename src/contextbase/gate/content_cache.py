"""Contents that were used last, in memory."""

from collections.abc import Iterable
from typing import Final

from contextbase.ids import ContentHash
from contextbase.lru_cache import LruCache

__all__ = ["ContentCache"]

_MOST_BYTES: Final = 64 << 20
_LARGEST: Final = 1 << 20


class ContentCache:
    """The contents that were used last. They are named by what they hold, so they never go stale."""

    def __init__(self) -> None:
        self._contents: LruCache[ContentHash, bytes] = LruCache(_MOST_BYTES, weigh=lambda _, content: len(content))

    def find(self, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        return {name: content for name in names if (content := self._contents.get(name)) is not None}

    def clear(self) -> None:
        self._contents.clear()

    def keep(self, name: ContentHash, content: bytes) -> None:
        if len(content) <= _LARGEST:
            self._contents.put(name, content)
