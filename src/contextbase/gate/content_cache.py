"""Contents that were used last, in memory."""

from collections import OrderedDict
from collections.abc import Iterable
from typing import Final

from contextbase.ids import ContentHash

__all__ = ["ContentCache"]

MOST_BYTES: Final = 64 * 1024 * 1024
LARGEST: Final = 1024 * 1024


class ContentCache:
    """The contents that were used last. They are named by what they hold, so they never go stale."""

    def __init__(self) -> None:
        self._contents: OrderedDict[ContentHash, bytes] = OrderedDict()
        self._bytes = 0

    def find(self, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        found = {name: self._contents[name] for name in names if name in self._contents}
        for name in found:
            self._contents.move_to_end(name)
        return found

    def clear(self) -> None:
        self._contents.clear()
        self._bytes = 0

    def keep(self, name: ContentHash, content: bytes) -> None:
        if name in self._contents or len(content) > LARGEST:
            return
        self._contents[name] = content
        self._bytes += len(content)
        while self._bytes > MOST_BYTES:
            _, oldest = self._contents.popitem(last=False)
            self._bytes -= len(oldest)
