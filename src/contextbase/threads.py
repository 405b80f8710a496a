"""Waiting for work that must not be left half-way."""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Any, ParamSpec, TypeVar

__all__ = ["ended", "in_thread"]

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
