"""Runs coroutines for code that is not async: an event loop in a thread of its own.

A loop of one's own thread works everywhere, also where a loop runs already (notebooks, async servers)."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Any, TypeVar

from contextbase.errors import InvalidInput

__all__ = ["Portal"]

Answer = TypeVar("Answer")


class Portal:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="contextbase-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        """Its result, or the exception it raises; interrupted, it is cancelled. Raises `InvalidInput` once closed."""
        if self._loop.is_closed():
            coroutine.close()
            raise InvalidInput("This client is closed. Create a new one.")
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, generator: AsyncGenerator[Answer, None]) -> Iterator[Answer]:
        """What an async generator yields; closed when the reader stops."""
        in_use = asyncio.Lock()  # interrupted, it takes a moment to stop, and cannot be closed before
        try:
            while True:
                try:
                    yield self.run(_next(generator, in_use))
                except StopAsyncIteration:
                    return
        finally:
            if not self._loop.is_closed():
                self.run(_closed(generator, in_use))

    @contextmanager
    def entered(self, manager: AbstractAsyncContextManager[Answer]) -> Iterator[Answer]:
        """An async context manager as a plain one."""
        value = self.run(_entered(manager))
        try:
            yield value
        except BaseException as error:
            if not self.run(_left(manager, error)):
                raise
        else:
            self.run(_left(manager, None))

    @property
    def is_closed(self) -> bool:
        return self._loop.is_closed()

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self.run(self._loop.shutdown_asyncgens())  # of readers that stopped early
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(generator: AsyncGenerator[Answer, None], in_use: asyncio.Lock) -> Answer:
    async with in_use:
        return await anext(generator)


async def _closed(generator: AsyncGenerator[Any, None], in_use: asyncio.Lock) -> None:
    async with in_use:
        await generator.aclose()


async def _entered(manager: AbstractAsyncContextManager[Answer]) -> Answer:
    return await manager.__aenter__()


async def _left(manager: AbstractAsyncContextManager[Any], error: BaseException | None) -> bool:
    return bool(await manager.__aexit__(None if error is None else type(error), error, None))
