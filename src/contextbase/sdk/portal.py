"""Runs coroutines for code that is not async: an event loop in a thread of its own.

A loop of one's own thread works everywhere, also where a loop runs already (notebooks, async servers)."""

import asyncio
import threading
from collections.abc import AsyncGenerator, Coroutine, Iterator
from typing import Any, TypeVar

__all__ = ["Portal"]

Answer = TypeVar("Answer")


class Portal:
    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="contextbase-client", daemon=True)
        self._thread.start()

    def run(self, coroutine: Coroutine[Any, Any, Answer]) -> Answer:
        """Its result, or the exception it raises; interrupted, it is cancelled."""
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def iterate(self, generator: AsyncGenerator[Answer, None]) -> Iterator[Answer]:
        """What an async generator yields; closed when the reader stops."""
        try:
            while True:
                try:
                    yield self.run(_next(generator))
                except StopAsyncIteration:
                    return
        finally:
            self.run(generator.aclose())

    def close(self) -> None:
        if self._loop.is_closed():
            return
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _next(generator: AsyncGenerator[Answer, None]) -> Answer:
    return await anext(generator)
