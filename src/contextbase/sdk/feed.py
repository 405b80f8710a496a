"""`FeedReader`: a project's changes as they land, from a cursor on, through lost connections."""

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import httpx
from pydantic import TypeAdapter, ValidationError

from contextbase.errors import ContextbaseError, Unavailable, error_of_code
from contextbase.sdk.connection import check_server
from contextbase.sdk.lines import lines_of
from contextbase.wire.feed import FeedItemView
from contextbase.wire.problem import Problem

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
    """Follows one project; keeps its place, so that iterating again goes on where it was."""

    def __init__(
        self, url: str, token: str, project: str, *, path: str | None = None, after: str | None = None
    ) -> None:
        check_server(url, token)
        self._url = url.rstrip("/")
        self._headers = {"Authorization": f"Bearer {token}", "Accept": "text/event-stream"}
        self._query = {"project": project} | ({"path": path} if path else {})
        self.cursor = after

    def __iter__(self) -> Iterator[Received]:
        """Every change once, in order, for as long as the caller likes. Only a server that cannot be reached at first,
        or refuses, raises; a connection that is lost later is made again."""
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
        try:
            with (
                httpx.Client(base_url=self._url, headers=self._headers, timeout=timeout, trust_env=False) as http,
                http.stream("GET", "/api/v1/collab/feed", params=query) as response,
            ):
                if not response.is_success:
                    response.read()
                    raise _error_of(response)
                yield from self._items(lines_of(response))
        except httpx.HTTPError as error:
            raise Unavailable(f"The server at {self._url} does not answer ({type(error).__name__}).") from error

    def _items(self, lines: Iterator[str]) -> Iterator[Received | None]:
        cursor, data = self.cursor, ""
        for line in lines:
            name, _, value = line.partition(": ")
            if name == "id":
                cursor = value
            elif name == "data":
                data = value
            elif not line:
                received = Received(cursor=cursor or "", item=_ITEM.validate_json(data)) if data else None
                # Taken as read once the caller asks for the next: an item is repeated rather than lost.
                yield received
                self.cursor, data = cursor, ""


def _error_of(response: httpx.Response) -> ContextbaseError:
    try:
        problem = Problem.model_validate_json(response.content)
    except ValidationError:
        return Unavailable(f"The server answered with status {response.status_code} and no reason.")
    return error_of_code(problem.code, problem.detail, **problem.details | {"trace_id": problem.trace_id})
