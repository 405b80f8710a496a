"""Items as server-sent events, as they come. Silence is broken by comments, so that a reader can tell it from death."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Coroutine
from contextlib import aclosing
from typing import Final

from fastapi import Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from contextbase.errors import ContextbaseError
from contextbase.interfaces.api.event_stream import EVENT_STREAM
from contextbase.interfaces.api.middleware import NOBODY_THERE
from contextbase.interfaces.api.problems import problem_of
from contextbase.interfaces.api.watched_caller import Watch
from contextbase.wire.sandbox import FailedItem

__all__ = ["begun_item_stream", "item_stream", "unless_hung_up"]

_SILENCE_SECONDS: Final = 10.0
_SILENCE: Final = ":\n\n"


async def item_stream(items: AsyncGenerator[BaseModel, None], watch: Watch) -> StreamingResponse:
    """What goes wrong before the first item is raised here, and answered like any other request. It ends when the
    caller may not go on."""
    first = await anext(items)
    return StreamingResponse(_events(_event(first), items, watch), media_type=EVENT_STREAM)


def begun_item_stream(items: AsyncGenerator[BaseModel, None], watch: Watch) -> StreamingResponse:
    """Of something that runs already, and may be silent for long: the answer begins at once."""
    return StreamingResponse(_events(_SILENCE, items, watch), media_type=EVENT_STREAM)


async def unless_hung_up(
    request: Request, work: Coroutine[None, None, BaseModel], watch: Watch
) -> BaseModel | Response:
    """What it comes to, told at its end. It is cancelled when whoever asked for it goes away, or may not go on."""
    working, leaving = asyncio.create_task(work), asyncio.create_task(_hung_up(request))
    watching = asyncio.ensure_future(watch())
    tasks = (working, leaving, watching)
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        if working.done():
            return working.result()
        if watching.done():
            raise watching.result()
        return Response(status_code=NOBODY_THERE)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _hung_up(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass


async def _events(first: str, items: AsyncGenerator[BaseModel, None], watch: Watch) -> AsyncIterator[str]:
    async with aclosing(items):
        yield first
        coming: asyncio.Task[BaseModel] | None = None
        refused = asyncio.ensure_future(watch())
        try:
            while True:
                coming = coming or asyncio.create_task(_next(items))
                done, _ = await asyncio.wait(
                    {coming, refused}, timeout=_SILENCE_SECONDS, return_when=asyncio.FIRST_COMPLETED
                )
                if refused in done:
                    raise refused.result()
                if not done:
                    yield _SILENCE
                    continue
                item, coming = coming.result(), None
                yield _event(item)
        except StopAsyncIteration:
            return
        except ContextbaseError as error:
            yield _event(FailedItem(problem=problem_of(error)))
        finally:
            left = [task for task in (coming, refused) if task is not None]
            for task in left:
                task.cancel()
            await asyncio.gather(*left, return_exceptions=True)


async def _next(items: AsyncGenerator[BaseModel, None]) -> BaseModel:
    return await anext(items)


def _event(item: BaseModel) -> str:
    return f"data: {item.model_dump_json()}\n\n"
