# Generated from aio/events.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Events of several scopes over one connection, as a part of the clients: `client.events`."""

from collections.abc import Generator, Sequence
from typing import Final

from pydantic import TypeAdapter

from contextbase.sdk.arguments import checked
from contextbase.sdk.blocking.connection import Connection
from contextbase.sdk.blocking.following import followed
from contextbase.sdk.options import Received
from contextbase.wire.event import ScopedItemView, ScopedPageView

__all__ = ["Events"]

_EVENTS: Final = "/api/v1/events"
_ITEM: Final[TypeAdapter[ScopedItemView]] = TypeAdapter(ScopedItemView)


class Events:
    """A scope is `project:NAME`, `user:me` (notices to you), `system` (for admins) or `session:ID`."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @checked
    def list(
        self, scopes: Sequence[str], *, after: str | None = None, limit: int = 100, wait: float = 0.0
    ) -> ScopedPageView:
        """What comes after a cursor; 'start' is the beginning, None is now. With `wait`, not before there is something
        or the time is over."""
        return self._connection.read(
            ScopedPageView, _EVENTS, read_seconds=wait + 30, scope=[*scopes], after=after, limit=limit, wait=wait
        )

    @checked
    def follow(
        self, scopes: Sequence[str], *, after: str | None = None
    ) -> Generator[Received[ScopedItemView], None, None]:
        """Every item once, in order within its scope, for as long as the caller likes. Only a server that cannot be
        reached at first, or refuses, raises; a connection that is lost later is made again. Close it if you stop early
        (`contextlib.closing`)."""
        return followed(self._connection, _EVENTS, _ITEM, after, scope=[*scopes])

    @checked
    def body(self, scope: str, number: int) -> Generator[bytes, None, None]:
        """The whole payload, as JSON in pieces, of an event whose `body` is set."""
        with self._connection.stream(f"{_EVENTS}/body", scope=scope, number=number) as response:
            for piece in response.iter_raw():
                yield piece
