"""What making, verifying and restoring tell their callers."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Literal, TypeVar

from contextbase.backup.manifest import Manifest

__all__ = ["BackupProgress", "BlobProgress", "Made", "OnProgress", "Restored", "Verified", "each"]

Item = TypeVar("Item")


@dataclass(frozen=True, kw_only=True, slots=True)
class BackupProgress:
    stage: Literal["tables", "blobs"]
    done: int  # bytes
    total: int | None


OnProgress = Callable[[BackupProgress], None]


class BlobProgress:
    """Tells of blobs as their bytes pass, since one may be as large as all others."""

    def __init__(self, on_progress: OnProgress, *, total: int) -> None:
        self._on_progress = on_progress
        self._total = total
        self._done = 0

    def add(self, size: int) -> None:
        self._done += size
        self._on_progress(BackupProgress(stage="blobs", done=self._done, total=self._total))

    async def counted(self, pieces: AsyncGenerator[bytes, None]) -> AsyncGenerator[bytes, None]:
        async with aclosing(pieces):
            async for piece in pieces:
                self.add(len(piece))
                yield piece


@dataclass(frozen=True, kw_only=True, slots=True)
class Made:
    manifest: Manifest
    new_blobs: int  # those that no earlier backup had left in the target
    new_bytes: int


@dataclass(frozen=True, kw_only=True, slots=True)
class Verified:
    manifest: Manifest
    problems: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class Restored:
    manifest: Manifest
    rows: int
    new_blobs: int  # those that the blob store did not have yet


async def each(items: Iterable[Item], work: Callable[[Item], Awaitable[None]], *, at_once: int) -> None:
    """Do the work for all of them, a few at a time; the first failure ends it."""
    waiting = iter(items)

    async def worker() -> None:
        for item in waiting:
            await work(item)

    workers = [asyncio.create_task(worker()) for _ in range(at_once)]
    try:
        await asyncio.gather(*workers)
    finally:
        for task in workers:
            task.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
