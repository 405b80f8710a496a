"""What the file service needs of a place, and of the content of a file in it."""

from collections.abc import AsyncGenerator, Hashable
from typing import Protocol

__all__ = ["FileContent"]


class FileContent(Protocol):
    """The bytes of one file, to be read at any offset and in any order."""

    @property
    def size(self) -> int: ...

    @property
    def identity(self) -> Hashable | None:
        """Equal only for equal bytes; None: it may change before anybody could tell."""
        ...

    def stream(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to (not including) `end`, in pieces of at most 1 MiB. A reader that may stop early
        closes it. A file that got shorter meanwhile ends early."""
        ...
