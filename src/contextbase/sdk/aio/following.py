"""Streams of server-sent events that go on through lost connections."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Any, Final, TypeVar

import httpx
from pydantic import TypeAdapter, ValidationError

from contextbase.errors import Unavailable
from contextbase.sdk.aio.connection import SILENCE_SECONDS, AsyncConnection
from contextbase.sdk.aio.lines import lines_of
from contextbase.sdk.aio.waiting import sleep
from contextbase.sdk.options import Received

__all__ = ["followed"]

Item = TypeVar("Item")

_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 5.0


async def followed(
    connection: AsyncConnection, path: str, item: TypeAdapter[Item], after: str | None, /, **query: Any
) -> AsyncGenerator[Received[Item], None]:
    """Every item after a cursor, once and in order, for as long as the caller likes. Only a server that cannot be
    reached at first, or refuses, raises; a connection that is lost later is made again."""
    cursor, reached, pause = after, False, _FIRST_PAUSE_SECONDS
    while True:
        try:
            stream = _stream(connection, path, item, cursor, query)
            async with aclosing(stream):
                async for at, found in stream:
                    reached, pause = True, _FIRST_PAUSE_SECONDS
                    if found is not None:
                        yield Received(cursor=at, item=found)
                    # Taken as read once the caller asks for the next: an item is repeated rather than lost.
                    cursor = at
        except Unavailable:
            if not reached:
                raise
        await sleep(pause)
        pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)


async def _stream(
    connection: AsyncConnection, path: str, item: TypeAdapter[Item], after: str | None, query: dict[str, Any]
) -> AsyncGenerator[tuple[str, Item | None], None]:
    """One connection's cursors, each with the item it comes after; None for a sign of life without one."""
    headers = {"Accept": "text/event-stream"}
    async with connection.stream(path, headers=headers, read_seconds=SILENCE_SECONDS, after=after, **query) as response:
        async for found in _items(response, item, after or ""):
            yield found


async def _items(
    response: httpx.Response, item: TypeAdapter[Item], cursor: str
) -> AsyncIterator[tuple[str, Item | None]]:
    data = ""
    async for line in lines_of(response):
        name, _, value = line.partition(": ")
        if name == "id":
            cursor = value
        elif name == "data":
            data = value
        elif not line:
            try:
                found = item.validate_json(data) if data else None
            except ValidationError as error:
                raise Unavailable("The stream has an item that is not contextbase's; upgrade this client.") from error
            yield cursor, found
            data = ""
