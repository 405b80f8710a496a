"""Items as server-sent events, as they come. Silence is broken by comments, so that a reader can tell it from death."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Final

from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from contextbase.errors import ContextbaseError
from contextbase.interfaces.api.feed_stream import EVENT_STREAM
from contextbase.interfaces.api.problems import problem_of
from contextbase.wire.sandbox import FailedItem

__all__ = ["item_stream"]

_SILENCE_SECONDS: Final = 10.0


async def item_stream(items: AsyncGenerator[BaseModel, None]) -> StreamingResponse:
    """What goes wrong before the first item is raised here, and answered like any other request."""
    first = await anext(items)
    return StreamingResponse(_events(first, items), media_type=EVENT_STREAM)


async def _events(first: BaseModel, items: AsyncGenerator[BaseModel, None]) -> AsyncIterator[str]:
    async with aclosing(items):
        yield _event(first)
        coming: asyncio.Task[BaseModel] | None = None
        try:
            while True:
                coming = coming or asyncio.create_task(_next(items))
                done, _ = await asyncio.wait({coming}, timeout=_SILENCE_SECONDS)
                if not done:
                    yield ":\n\n"
                    continue
                item, coming = coming.result(), None
                yield _event(item)
        except StopAsyncIteration:
            return
        except ContextbaseError as error:
            yield _event(FailedItem(problem=problem_of(error)))
        finally:
            if coming is not None:
                coming.cancel()
                await asyncio.gather(coming, return_exceptions=True)


async def _next(items: AsyncGenerator[BaseModel, None]) -> BaseModel:
    return await anext(items)


def _event(item: BaseModel) -> str:
    return f"data: {item.model_dump_json()}\n\n"
