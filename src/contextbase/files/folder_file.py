"""A file in a workspace's folder, read while programs may change it."""

import os
import time
from collections import OrderedDict
from collections.abc import AsyncGenerator, Hashable
from typing import Final

from contextbase.ids import ContentHash
from contextbase.threads import in_thread
from contextbase.workspaces.folder import signature_of

__all__ = ["FolderFile", "HeldContent", "KnownHashes"]

_PIECE: Final = 1 << 20
_TICK_NS: Final = 20_000_000  # within which a file system may give two changes the same time
_MOST_KNOWN: Final = 100_000


class FolderFile:
    """Of an open descriptor, which is closed by whoever opened it."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._status = os.fstat(descriptor)

    @property
    def descriptor(self) -> int:
        return self._descriptor

    @property
    def status(self) -> os.stat_result:
        return self._status

    @property
    def size(self) -> int:
        return self._status.st_size

    @property
    def identity(self) -> Hashable | None:
        return identity_of(self._status)

    async def stream(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        while start < end and (piece := await in_thread(os.pread, self._descriptor, min(_PIECE, end - start), start)):
            start += len(piece)
            yield piece


class HeldContent:
    """Bytes at hand as the content of a file, such as what a link leads to."""

    descriptor = None

    def __init__(self, content: bytes) -> None:
        self._content = content

    @property
    def size(self) -> int:
        return len(self._content)

    @property
    def identity(self) -> Hashable:
        return self._content

    async def stream(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        yield self._content[start:end]


class KnownHashes:
    """Hashes of files that were read, by what they looked like then."""

    def __init__(self) -> None:
        self._known: OrderedDict[Hashable, ContentHash] = OrderedDict()

    def find(self, status: os.stat_result) -> ContentHash | None:
        return self._known.get(identity_of(status))

    def keep(self, status: os.stat_result, found: ContentHash) -> None:
        """Of a file that was read; `status` is from before that."""
        if identity_of(status) is not None:
            self.keep_own(status, found)

    def keep_own(self, status: os.stat_result, found: ContentHash) -> None:
        """Of a file that we wrote: it is so at this status, however fresh."""
        self._known[signature_of(status)] = found
        self._known.move_to_end(signature_of(status))
        if len(self._known) > _MOST_KNOWN:
            self._known.popitem(last=False)


def identity_of(status: os.stat_result) -> Hashable | None:
    """None: it was changed just now, and the next change might not show."""
    return None if status.st_ctime_ns > time.time_ns() - _TICK_NS else signature_of(status)
