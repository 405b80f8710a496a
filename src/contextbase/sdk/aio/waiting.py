"""How async code waits. `blocking/waiting.py` has the same functions for code that is not; both are written by hand."""

import asyncio
from collections.abc import AsyncIterable, AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from typing import Final, ParamSpec, TypeVar

__all__ = ["PIECES", "Lock", "Pieces", "each_piece", "in_thread", "repeated", "sleep"]

P = ParamSpec("P")
Result = TypeVar("Result")

Lock = asyncio.Lock

Pieces = Iterable[bytes] | AsyncIterable[bytes]
PIECES: Final = (Iterable, AsyncIterable)


async def sleep(seconds: float) -> None:
    await asyncio.sleep(seconds)


async def in_thread(function: Callable[P, Result], *args: P.args, **kwargs: P.kwargs) -> Result:
    """The result of a function that may block."""
    return await asyncio.to_thread(function, *args, **kwargs)


async def each_piece(pieces: Pieces) -> AsyncIterator[bytes]:
    if isinstance(pieces, AsyncIterable):
        async for piece in pieces:
            yield piece
        return
    rest = iter(pieces)
    while (given := await asyncio.to_thread(next, rest, None)) is not None:
        yield given


@asynccontextmanager
async def repeated(action: Callable[[], Awaitable[bool]], *, every_seconds: float, name: str) -> AsyncIterator[None]:
    """Do something again and again during a block, until it answers False."""

    async def repeat() -> None:
        is_wanted = True
        while is_wanted:
            await asyncio.sleep(every_seconds)
            is_wanted = await action()

    repeating = asyncio.create_task(repeat(), name=name)
    try:
        yield
    finally:
        repeating.cancel()
        with suppress(asyncio.CancelledError):
            await repeating
