"""Events of an executor in batches, so that many are stored at once."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import Any, Final

from contextbase.errors import ContextbaseError, CursorOutdated

__all__ = ["gathered"]

_BATCH: Final = 200


async def gathered(events: AsyncIterator[dict[str, Any]]) -> AsyncGenerator[Sequence[dict[str, Any]], None]:
    """Events in batches: what has come by the time somebody asks."""
    queue: asyncio.Queue[dict[str, Any] | BaseException | None] = asyncio.Queue(_BATCH)

    async def fill() -> None:
        try:
            async for event in events:
                await queue.put(event)
            await queue.put(None)
        except (ContextbaseError, CursorOutdated) as error:
            await queue.put(error)

    filling = asyncio.create_task(fill())
    try:
        while True:
            first = await queue.get()
            batch: list[dict[str, Any]] = []
            one: dict[str, Any] | BaseException | None = first
            while isinstance(one, dict):
                batch.append(one)
                if len(batch) == _BATCH or queue.empty():
                    break
                one = queue.get_nowait()
            if batch:
                yield batch
            if isinstance(one, BaseException):
                raise one
            if one is None:
                return
    finally:
        filling.cancel()
        await asyncio.gather(filling, return_exceptions=True)
