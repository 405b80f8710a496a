"""Contents that are too large for the database, between the gate and the blob store.

What a request brings is stored before it joins its project's line: however long that takes, nobody else waits for it.
What a merge makes or needs is known only in the request's turn. There the blob store gets a short time. If it does not
answer, that request alone fails; and so does, at once, whoever needs the store in its turn within the next seconds.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Coroutine, Mapping
from typing import Any, Final, TypeVar

from contextbase.errors import BlobStoreUnavailable, ContextbaseError, TooBusy
from contextbase.gate.content_types import BYTES_LOOKED_AT
from contextbase.ids import ContentHash, PrincipalId
from contextbase.storage.blobs.catalog import BlobCatalog

__all__ = ["LargeContents"]

_AHEAD_SECONDS: Final = 60.0
_TURN_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 10.0
# Requests whose contents are being stored hold them in memory: a store that hangs must not fill it.
_MOST_BYTES: Final = 256 << 20
_MOST_BYTES_EACH: Final = 64 << 20
_MOST_LOOKED_INTO_AT_ONCE: Final = 16
_log = logging.getLogger(__name__)
Result = TypeVar("Result")


class LargeContents:
    def __init__(
        self,
        catalog: BlobCatalog,
        *,
        ahead_seconds: float = _AHEAD_SECONDS,
        turn_seconds: float = _TURN_SECONDS,
        pause_seconds: float = _PAUSE_SECONDS,
    ) -> None:
        self._catalog = catalog
        self._ahead_seconds = ahead_seconds
        self._turn_seconds = turn_seconds
        self._pause_seconds = pause_seconds
        self._paused_until = 0.0
        self._bytes: Counter[PrincipalId] = Counter()
        self._given_up: set[asyncio.Task[Any]] = set()

    @property
    def limit(self) -> int:
        """Contents of this many bytes are large."""
        return self._catalog.limit

    async def store_ahead(self, owner: PrincipalId, contents: Mapping[ContentHash, bytes]) -> None:
        """Store what a request brings. Raises `TooBusy` or `BlobStoreUnavailable`, and what `BlobCatalog.put` does."""
        size = sum(map(len, contents.values()))
        held, all_held = self._bytes[owner], self._bytes.total()
        if (held and held + size > _MOST_BYTES_EACH) or (all_held and all_held + size > _MOST_BYTES):
            raise TooBusy("Too many large contents are waiting to be stored; try again in a moment.")
        self._bytes[owner] += size
        try:
            async with asyncio.timeout(self._ahead_seconds):
                for name, content in contents.items():
                    await self._catalog.put_bytes(content, expected=name)
        except TimeoutError:
            raise BlobStoreUnavailable(
                f"The blob store did not take the commit's large contents within {self._ahead_seconds:g} seconds; "
                "nothing was committed. Try again."
            ) from None
        finally:
            self._bytes[owner] -= size
            if not self._bytes[owner]:
                del self._bytes[owner]

    async def store(self, name: ContentHash, content: bytes) -> None:
        """In a request's turn: what a merge made. Raises `BlobStoreUnavailable` after a short time."""
        await self._in_turn(self._catalog.put_bytes(content, expected=name))

    async def read(self, name: ContentHash, size: int) -> bytes:
        """In a request's turn: what a merge needs, whatever its size. Raises as `store` does."""
        if size < self._catalog.limit:
            return await self._catalog.read(name)
        return await self._in_turn(self._catalog.read(name))

    async def starts_of(self, sizes: Mapping[ContentHash, int]) -> dict[ContentHash, bytes]:
        """The first bytes of these contents, as far as the blob store gives them soon: they only tell a file's type."""
        at_once = asyncio.Semaphore(_MOST_LOOKED_INTO_AT_ONCE)

        async def start_of(name: ContentHash) -> bytes | None:
            async with at_once:
                return await self._start_of(name, min(sizes[name], BYTES_LOOKED_AT))

        found = zip(sizes, await asyncio.gather(*map(start_of, sizes)), strict=True)
        return {name: start for name, start in found if start is not None}

    async def close(self) -> None:
        """Wait for what was given up to end."""
        await asyncio.gather(*self._given_up, return_exceptions=True)

    async def _start_of(self, name: ContentHash, size: int) -> bytes | None:
        if self._is_paused():
            return None
        task = asyncio.create_task(self._first(name, size))
        try:
            return task.result() if await self._ends_soon(task) else None
        except ContextbaseError as error:
            _log.warning("a file's type is taken from its name alone: %s", error)
            return None

    async def _first(self, name: ContentHash, size: int) -> bytes:
        return b"".join([piece async for piece in self._catalog.get(name, end=size)])

    async def _in_turn(self, work: Coroutine[Any, Any, Result]) -> Result:
        if self._is_paused():
            work.close()
            raise _no_answer()
        task = asyncio.create_task(work)
        if not await self._ends_soon(task):
            self._paused_until = asyncio.get_running_loop().time() + self._pause_seconds
            raise _no_answer()
        return task.result()

    def _is_paused(self) -> bool:
        return asyncio.get_running_loop().time() < self._paused_until

    async def _ends_soon(self, task: asyncio.Task[Any]) -> bool:
        """Whether it ends within the time of a turn; otherwise it is given up."""
        await asyncio.wait({task}, timeout=self._turn_seconds)
        if task.done():
            return True
        task.cancel()
        self._given_up.add(task)
        task.add_done_callback(self._ended)
        return False

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._given_up.discard(task)
        if not task.cancelled():
            task.exception()  # whoever waited for it was told already


def _no_answer() -> BlobStoreUnavailable:
    return BlobStoreUnavailable(
        "The change has to be merged with a large file, and the blob store does not answer; nothing was committed. "
        "Try again in a moment."
    )
