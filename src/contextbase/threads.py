"""Waiting for work that must not be left half-way."""

import asyncio
from collections.abc import Callable
from functools import partial
from types import TracebackType
from typing import Any, ParamSpec, Self, TypeVar

__all__ = ["WriteBehind", "ended", "in_thread"]

Result = TypeVar("Result")
Arguments = ParamSpec("Arguments")


async def ended(work: asyncio.Future[Any]) -> None:
    """Wait until it is done, however often the caller is cancelled meanwhile. Its outcome is left in it."""
    while not work.done():
        try:
            await asyncio.wait({work})
        except asyncio.CancelledError:
            continue
    if not work.cancelled():
        work.exception()  # seen: nobody else may be left to ask for it


async def in_thread(function: Callable[Arguments, Result], *args: Arguments.args, **kwargs: Arguments.kwargs) -> Result:
    """Run blocking work in a thread and wait for its end even when cancelled, so that clean-up never races it."""
    work = asyncio.get_running_loop().run_in_executor(None, partial(function, *args, **kwargs))
    try:
        return await asyncio.shield(work)
    except asyncio.CancelledError:
        await ended(work)
        raise


class WriteBehind:
    """Blocking work, one piece after the other, while the next piece is got ready. None is under way when the block has
    ended; what failed is raised by the next `start`, or at the end."""

    def __init__(self) -> None:
        self._under_way: asyncio.Task[Any] | None = None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        under_way, self._under_way = self._under_way, None
        if under_way is None:
            return
        if error is None:
            await under_way
        else:
            await ended(under_way)

    async def start(
        self, function: Callable[Arguments, Any], *args: Arguments.args, **kwargs: Arguments.kwargs
    ) -> None:
        """Returns when the piece before is done."""
        if self._under_way is not None:
            await self._under_way
        self._under_way = asyncio.create_task(in_thread(function, *args, **kwargs))
