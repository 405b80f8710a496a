"""Several scopes over one connection, with one cursor that covers all of them."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from contextbase.errors import CursorOutdated, InvalidInput
from contextbase.interfaces.api.event_stream import Chunks
from contextbase.interfaces.api.feed_stream import in_chunks
from contextbase.interfaces.api.item_views import scoped_item_view
from contextbase.interfaces.api.scope_readers import FoundEvents, ScopeReader
from contextbase.streams.feed_model import FeedCommit
from contextbase.streams.model import START, StreamEvent

__all__ = ["EventsReader", "ScopedItem", "parse_cursor"]

_AT_ONCE: Final = 100
_LONGEST_WAIT_SECONDS: Final = 0.5  # then it is asked again whether the caller may read


@dataclass(frozen=True, kw_only=True, slots=True)
class ScopedItem:
    scope: str
    cursor: str  # after it, of all scopes
    body: FeedCommit | StreamEvent


def parse_cursor(text: str | None, scopes: Sequence[str]) -> dict[str, str | None]:
    """Where to start in each scope: `scope=cursor`, separated by commas. One that is not in it starts now.

    A part about a scope that was not asked for is passed over, so that a reader may ask for fewer scopes later."""
    if text is None or text == START:
        return dict.fromkeys(scopes, text)
    parts = [part.partition("=") for part in text.split(",")]
    if not all(name and cursor for name, _, cursor in parts):
        raise InvalidInput(f"{text[:80]!r} is not a cursor of several scopes; pass one that was given, or '{START}'.")
    given = {name: cursor for name, _, cursor in parts}
    return {scope: given.get(scope) for scope in scopes}


class EventsReader:
    """Within a scope items come in order; between scopes there is none."""

    def __init__(self, readers: Sequence[ScopeReader]) -> None:
        self._readers = readers
        self._woken = asyncio.Event()

    @property
    def cursor(self) -> str:
        return _joined({reader.name: reader.cursor for reader in self._readers})

    @property
    def ended(self) -> bool:
        return any(reader.ended for reader in self._readers)

    async def start(self, after: str | None) -> None:
        """Raises `CursorOutdated` if one of the scopes was restored since; it names the scope."""
        starts = parse_cursor(after, [reader.name for reader in self._readers])
        for reader in self._readers:
            try:
                await reader.start(starts[reader.name])
            except CursorOutdated as error:
                raise CursorOutdated(error.message, **error.details, scope=reader.name) from error

    async def page_now(self, limit: int) -> tuple[list[ScopedItem], bool]:
        """What is there already; and whether there is more."""
        items: list[ScopedItem] = []
        more = False
        for index, reader in enumerate(self._readers):
            if len(items) >= limit:
                return items, True  # there may be
            found = await reader.read_now(self._share(limit - len(items), index))
            items += self._scoped(reader, found)
            more |= found.more
        return items, more

    @asynccontextmanager
    async def following(self) -> AsyncIterator[None]:
        async with AsyncExitStack() as stack:
            for reader in self._readers:
                await stack.enter_async_context(reader.following(self._woken.set))
            yield

    async def page(self, limit: int) -> list[ScopedItem]:
        """What is new in the windows that all readers in this process share."""
        self._woken.clear()
        items: list[ScopedItem] = []
        for index, reader in enumerate(self._readers):
            if len(items) < limit:
                items += self._scoped(reader, await reader.read(self._share(limit - len(items), index)))
        return items

    async def read(self) -> Chunks | None:
        items = await self.page(_AT_ONCE * len(self._readers))
        if not items:
            return None
        chunks = in_chunks((item.cursor, _encoded(item.scope, item.body)) for item in items)
        return Chunks(chunks=chunks, cursor=items[-1].cursor)

    async def wait(self, seconds: float) -> None:
        """Until there may be something new, the server stops or the time is over; at most half a second."""
        if self.ended or seconds <= 0 or any(reader.is_behind for reader in self._readers):
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(min(seconds, _LONGEST_WAIT_SECONDS)):
                await self._woken.wait()

    def _share(self, left: int, index: int) -> int:
        """How many items a scope may give, so that a busy one leaves room for those after it."""
        return max(1, left // (len(self._readers) - index))

    def _scoped(self, reader: ScopeReader, found: FoundEvents) -> list[ScopedItem]:
        cursors = {one.name: one.cursor for one in self._readers}
        return [
            ScopedItem(scope=reader.name, cursor=_joined({**cursors, reader.name: cursor}), body=body)
            for cursor, body in found.items
        ]


def _joined(cursors: Mapping[str, object]) -> str:
    return ",".join(f"{name}={cursor}" for name, cursor in cursors.items())


@lru_cache(maxsize=1024)
def _encoded(scope: str, body: FeedCommit | StreamEvent) -> bytes:
    view = scoped_item_view(scope, body)
    return f"event: {view.type}\ndata: {view.model_dump_json()}\n\n".encode()
