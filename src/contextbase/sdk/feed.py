"""`FeedReader`: a project's changes as they land, from a cursor on, through lost connections."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import httpx
from pydantic import TypeAdapter, ValidationError

from contextbase.errors import InvalidInput, Unavailable
from contextbase.sdk.connection import error_of_response, no_answer, server_from
from contextbase.sdk.lines import lines_of
from contextbase.wire.feed import FeedItemView

__all__ = ["FeedReader", "Received"]

_ITEM: Final[TypeAdapter[FeedItemView]] = TypeAdapter(FeedItemView)
_SILENCE_SECONDS: Final = 45.0  # three heartbeats
_FIRST_PAUSE_SECONDS: Final = 0.2
_LONGEST_PAUSE_SECONDS: Final = 5.0


@dataclass(frozen=True, kw_only=True, slots=True)
class Received:
    cursor: str  # where to go on after this item
    item: FeedItemView


class FeedReader:
    """Follows one project; keeps its place, so that iterating again continues where it was.

    `path`: only what is at or below it. `after`: the cursor to continue from; "start" is the first commit. A `url` or
    `token` of None is found as `Client` does. Raises `InvalidInput` for arguments that cannot be
    right, and `Unauthenticated` without a token."""

    def __init__(
        self,
        url: str | None,
        token: str | None,
        project: str,
        *,
        path: str | None = None,
        after: str | None = None,
    ) -> None:
        url, token = server_from(url, token)
        for name, value in (("project", project), ("path", path or ""), ("after", after or "")):
            if not isinstance(value, str):
                raise InvalidInput(f"FeedReader: {name}: it must be a text, not {type(value).__name__}.")
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        self._query = {"project": project} | ({"path": path} if path else {})
        self.cursor = after

    def __iter__(self) -> Iterator[Received]:
        """Every change once, in order, for as long as the caller likes. Raises `Unavailable` if the server cannot be
        reached at first, and what it answers if it refuses; a connection that is lost later is made again."""
        reached, pause = False, _FIRST_PAUSE_SECONDS
        while True:
            try:
                for received in self._stream():
                    reached, pause = True, _FIRST_PAUSE_SECONDS
                    if received is not None:
                        yield received
            except Unavailable:
                if not reached:
                    raise
            time.sleep(pause)
            pause = min(pause * 2, _LONGEST_PAUSE_SECONDS)

    def _stream(self) -> Iterator[Received | None]:
        """One connection's items; None for each sign of life without one."""
        query = self._query | ({"after": self.cursor} if self.cursor else {})
        timeout = httpx.Timeout(10.0, read=_SILENCE_SECONDS)
        with (
            no_answer(self._url),
            httpx.Client(base_url=self._url, headers=self._headers, timeout=timeout, trust_env=False) as http,
            http.stream("GET", "/api/v1/feed", params=query) as response,
        ):
            if not response.is_success:
                response.read()
                raise error_of_response(response)
            yield from self._items(lines_of(response))

    def _items(self, lines: Iterator[str]) -> Iterator[Received | None]:
        cursor, data = self.cursor, ""
        for line in lines:
            name, _, value = line.partition(": ")
            if name == "id":
                cursor = value
            elif name == "data":
                data = value
            elif not line:
                received = Received(cursor=cursor or "", item=_item(data)) if data else None
                # Taken as read once the caller asks for the next: an item is repeated rather than lost.
                yield received
                self.cursor, data = cursor, ""


def _item(data: str) -> FeedItemView:
    try:
        return _ITEM.validate_json(data)
    except ValidationError as error:
        raise Unavailable("The feed broke off in the middle of an item.") from error
