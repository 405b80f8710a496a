"""Events of several scopes over one connection, as a part of the clients: `client.events`."""

from collections.abc import AsyncGenerator, Sequence
from typing import Final

from pydantic import TypeAdapter

from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.aio.following import followed
from contextbase.sdk.arguments import checked
from contextbase.sdk.options import Received
from contextbase.wire.event import ScopedItemView, ScopedPageView

__all__ = ["AsyncEvents"]

_EVENTS: Final = "/api/v1/events"
_ITEM: Final[TypeAdapter[ScopedItemView]] = TypeAdapter(ScopedItemView)


class AsyncEvents:
    """A scope is `project:NAME`, `user:me` (notices to you), `system` (for admins) or `session:ID`."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def list(
        self, scopes: Sequence[str], *, after: str | None = None, limit: int = 100, wait: float = 0.0
    ) -> ScopedPageView:
        """What comes after a cursor; 'start' is the beginning, None is now. With `wait`, not before there is something
        or the time is over."""
        return await self._connection.read(
            ScopedPageView, _EVENTS, read_seconds=wait + 30, scope=[*scopes], after=after, limit=limit, wait=wait
        )

    @checked
    def follow(
        self, scopes: Sequence[str], *, after: str | None = None
    ) -> AsyncGenerator[Received[ScopedItemView], None]:
        """Every item once, in order within its scope, for as long as the caller likes. Only a server that cannot be
        reached at first, or refuses, raises; a connection that is lost later is made again. Close it if you stop early
        (`contextlib.aclosing`)."""
        return followed(self._connection, _EVENTS, _ITEM, after, scope=[*scopes])

    @checked
    async def body(self, scope: str, number: int) -> AsyncGenerator[bytes, None]:
        """The whole payload, as JSON in pieces, of an event whose `body` is set."""
        async with self._connection.stream(f"{_EVENTS}/body", scope=scope, number=number) as response:
            async for piece in response.aiter_raw():
                yield piece
