"""Leases for code that is not async: any implementation, on an event loop in a thread of its own.

The loop does nothing else, so heartbeats go on whatever the caller is busy with.
"""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TypeVar

from contextbase.leases.model import DEFAULT_WAIT, Lease
from contextbase.leases.ports import LeaseManager

__all__ = ["SyncLeases"]

Answer = TypeVar("Answer")


class SyncLeases:
    """Each method does what the one of the port does. Good for any number of threads."""

    def __init__(self, make: Callable[[], LeaseManager]) -> None:
        """`make` is called once, on the loop: `BlockingLeases(lambda: FolderLeases(folder))`."""
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="contextbase-leases", daemon=True)
        self._thread.start()
        try:
            self._leases = self._run(_made(make))
        except BaseException:
            self._stop()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def acquire(self, pattern: str, *, owner: str, timeout: float = DEFAULT_WAIT) -> Lease:
        return self._run(self._leases.acquire(pattern, owner=owner, timeout=timeout))

    def release(self, lease: Lease) -> None:
        self._run(self._leases.release(lease))

    @contextmanager
    def holding(self, pattern: str, *, owner: str, timeout: float = DEFAULT_WAIT) -> Iterator[Lease]:
        """Acquired for the block, and released after it."""
        lease = self.acquire(pattern, owner=owner, timeout=timeout)
        try:
            yield lease
        finally:
            self.release(lease)

    @contextmanager
    def fenced(self, lease: Lease) -> Iterator[None]:
        fence = self._leases.fenced(lease)
        self._run(_entered(fence.__aenter__))
        try:
            yield
        finally:
            self._run(_left(fence.__aexit__))

    def is_locked(self, pattern: str) -> bool:
        return self._run(self._leases.is_locked(pattern))

    def locker_of(self, pattern: str) -> str | None:
        return self._run(self._leases.locker_of(pattern))

    def active(self) -> tuple[Lease, ...]:
        return self._run(self._leases.active())

    def release_all(self, owner: str) -> int:
        return self._run(self._leases.release_all(owner))

    def clean(self) -> tuple[Lease, ...]:
        return self._run(self._leases.clean())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        try:
            self._run(self._leases.close())
        finally:
            self._stop()

    def _run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def _stop(self) -> None:
        asyncio.run_coroutine_threadsafe(self._loop.shutdown_default_executor(), self._loop).result()
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _made(make: Callable[[], LeaseManager]) -> LeaseManager:
    return make()


async def _entered(enter: Callable[[], Coroutine[Any, Any, None]]) -> None:
    await enter()


async def _left(leave: Callable[[None, None, None], Coroutine[Any, Any, bool | None]]) -> None:
    await leave(None, None, None)
