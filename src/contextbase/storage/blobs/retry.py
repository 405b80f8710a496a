"""Tries again what a store could not do just now."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable, Iterator
from contextlib import aclosing
from typing import TypeVar

from contextbase.backoff import Backoff
from contextbase.errors import BlobStoreUnavailable
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import HashCheck, length_of
from contextbase.storage.blobs.ports import BlobStore, StoredBlob
from contextbase.storage.blobs.spool import SpoolFolder

__all__ = ["RetryingBlobStore"]

Result = TypeVar("Result")


class RetryingBlobStore:
    """Wraps a store: on `BlobStoreUnavailable`, and nothing else, it waits and tries again, a bounded number of times.

    A put is spooled first, so that it can be sent again; a read goes on from the byte it had reached.
    """

    def __init__(
        self,
        store: BlobStore,
        *,
        spool: SpoolFolder,
        backoff: Backoff | None = None,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._store = store
        self._spool = spool
        self._backoff = backoff or Backoff()
        self._sleep = sleep

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        async with self._spool.spooled(content, expected=expected) as spooled:
            return await self._retried(lambda: self._store.put(spooled, expected=spooled.hash))

    async def get(
        self, content_hash: ContentHash, *, start: int = 0, end: int | None = None
    ) -> AsyncGenerator[bytes, None]:
        whole = start == 0 and end is None
        # The store checks a whole read itself; one that is pieced together only we can check.
        check = HashCheck(content_hash, place="the blob store")
        reached = start
        delays = self._backoff.delays()
        while True:
            try:
                async with aclosing(self._store.get(content_hash, start=reached, end=end)) as pieces:
                    async for piece in pieces:
                        if whole:
                            await check.update_off_loop(piece)
                        reached += len(piece)
                        delays = self._backoff.delays()
                        yield piece
                break
            except BlobStoreUnavailable:
                if not await self._waited(delays):
                    raise
        if whole:
            check.finish()

    async def size(self, content_hash: ContentHash) -> int | None:
        return await self._retried(lambda: self._store.size(content_hash))

    async def exists(self, content_hash: ContentHash) -> bool:
        return await self._retried(lambda: self._store.exists(content_hash))

    async def list(self) -> AsyncGenerator[StoredBlob, None]:
        """Tries again until the first blob is there. After that a failure ends the listing: a second one could
        only start over."""
        delays = self._backoff.delays()
        started = False
        while True:
            try:
                async with aclosing(self._store.list()) as blobs:
                    async for blob in blobs:
                        started = True
                        yield blob
                return
            except BlobStoreUnavailable:
                if started or not await self._waited(delays):
                    raise

    async def delete(self, content_hash: ContentHash) -> bool:
        return await self._retried(lambda: self._store.delete(content_hash))

    async def verify(self, content_hash: ContentHash) -> int:
        return await length_of(self.get(content_hash))

    async def _retried(self, attempt: Callable[[], Awaitable[Result]]) -> Result:
        delays = self._backoff.delays()
        while True:
            try:
                return await attempt()
            except BlobStoreUnavailable:
                if not await self._waited(delays):
                    raise

    async def _waited(self, delays: Iterator[float]) -> bool:
        """Wait until the next try is due; False when there is none left."""
        delay = next(delays, None)
        if delay is not None:
            await self._sleep(delay)
        return delay is not None
