"""Reads, appends and removes the rows of streams. Says what is stored, not who may see it."""

import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

import asyncpg

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.errors import NotFound
from contextbase.identity.model import PrincipalKind
from contextbase.ids import ContentHash, PrincipalId, TreePath
from contextbase.streams.model import EventAuthor, EventBody, NewEvent, Scope, ScopeKind, StreamEvent, StreamHead

__all__ = ["StreamRepository", "author_of", "encoded"]

_SQL: Final = load_queries("contextbase.streams")


class StreamRepository:
    async def head(self, connection: Connection, scope: Scope) -> StreamHead:
        """Also of a stream to which nothing was ever appended."""
        row = await connection.fetchrow(_SQL.stream_head, scope.kind, scope.id)
        if row is None:
            return StreamHead(scope=scope)
        return StreamHead(scope=scope, epoch=row["epoch"], number=row["number"])

    async def news(
        self, connection: Connection, asked: Sequence[tuple[Scope, int]], *, limit: int
    ) -> list[tuple[StreamHead, list[StreamEvent]]]:
        """Of each stream how far it goes, and its first events after a number."""
        found = [(StreamHead(scope=scope), list[StreamEvent]()) for scope, _ in asked]
        kinds, ids = [scope.kind for scope, _ in asked], [scope.id for scope, _ in asked]
        for row in await connection.fetch(_SQL.news, kinds, ids, [after for _, after in asked], limit):
            place = row["place"] - 1
            head = StreamHead(scope=asked[place][0], epoch=row["epoch"], number=row["head"])
            events = found[place][1]
            if row["number"] is not None:
                events.append(_event(row))
            found[place] = (head, events)
        return found

    async def events(
        self, connection: Connection, scope: Scope, *, after: int, until: int, limit: int
    ) -> list[StreamEvent]:
        """The events after a number, up to another, that were not pruned."""
        if after >= until:
            return []
        rows = await connection.fetch(_SQL.events_between, scope.kind, scope.id, after, until, limit)
        return list(map(_event, rows))

    async def event(self, connection: Connection, scope: Scope, number: int) -> StreamEvent | None:
        found = await self.events(connection, scope, after=number - 1, until=number, limit=1)
        return found[0] if found else None

    async def append(self, connection: Connection, scope: Scope, events: Sequence[NewEvent]) -> list[int]:
        """Number and store events in the caller's transaction; others who append to the scope wait until it ends.

        Raises `NotFound` for a project or a user that does not exist."""
        return (await self.append_to_all(connection, {scope: events}))[scope]

    async def append_to_all(
        self, connection: Connection, events_of: Mapping[Scope, Sequence[NewEvent]]
    ) -> dict[Scope, list[int]]:
        """As `append`, to several streams."""
        last = await _take_numbers(connection, {scope: len(events) for scope, events in events_of.items() if events})
        numbers = {scope: _numbers(last.get(scope, 0), len(events)) for scope, events in events_of.items()}
        placed = [(scope, event) for scope, events in events_of.items() for event in events]
        if not placed:
            return numbers
        events = [event for _, event in placed]
        bodies = [event.body for event in events]
        await connection.execute(
            _SQL.insert_events,
            [scope.kind for scope, _ in placed],
            [scope.id for scope, _ in placed],
            [number for of_scope in numbers.values() for number in of_scope],
            [event.kind for event in events],
            [event.principal_id for event in events],
            [event.path for event in events],
            [encoded(event.payload) for event in events],
            [body and body.hash for body in bodies],
            [body and body.size for body in bodies],
        )
        return numbers

    async def prune(self, connection: Connection, kind: ScopeKind, age: timedelta, *, limit: int) -> int:
        """Remove at most so many events of these scopes that are older; returns how many."""
        return _count(await connection.execute(_SQL.prune_events, kind, age, limit))

    async def delete_events(self, connection: Connection, scope: Scope, *, limit: int) -> int:
        """Remove at most so many events of a scope, the oldest first; returns how many."""
        return _count(await connection.execute(_SQL.delete_events, scope.kind, scope.id, limit))

    async def delete_stream(self, connection: Connection, scope: Scope) -> None:
        """Remove the stream with all that is left in it."""
        await connection.execute(_SQL.delete_stream, scope.kind, scope.id)


def encoded(payload: object) -> str:
    """JSON as it is stored; raises `TypeError` or `ValueError` for what is not JSON."""
    return json.dumps(payload, ensure_ascii=False, allow_nan=False, separators=(",", ":"))


def author_of(row: asyncpg.Record) -> EventAuthor:
    return EventAuthor(
        id=PrincipalId(row["principal_id"]), kind=PrincipalKind(row["principal_kind"]), name=row["principal_name"]
    )


async def _take_numbers(connection: Connection, counts: Mapping[Scope, int]) -> dict[Scope, int]:
    """The last number of each."""
    last: dict[Scope, int] = {}
    others = [scope for scope in counts if scope.kind is not ScopeKind.PROJECT]
    try:
        for scope in counts.keys() - others:
            taken = await connection.fetchval(_SQL.take_numbers_of_project, scope.id, counts[scope])
            if taken is not None:
                last[scope] = taken
        if others:
            asked = [scope.kind for scope in others], [scope.id for scope in others], [counts[one] for one in others]
            for row in await connection.fetch(_SQL.take_numbers, *asked):
                last[Scope(kind=ScopeKind(row["scope_kind"]), id=row["scope_id"])] = row["number"]
    except asyncpg.ForeignKeyViolationError:
        last = {}
    for scope in counts:
        if scope not in last:
            raise NotFound(f"There is no {scope.kind} {scope.id}.")
    return last


def _numbers(last: int, count: int) -> list[int]:
    return list(range(last - count + 1, last + 1))


def _event(row: asyncpg.Record) -> StreamEvent:
    name = row["content_hash"]
    return StreamEvent(
        number=row["number"],
        kind=row["kind"],
        author=author_of(row) if row["principal_id"] else None,
        path=TreePath.stored(row["path"]) if row["path"] else None,
        payload=json.loads(row["payload"]),
        body=None if name is None else EventBody(hash=ContentHash(name), size=row["size"]),
        at=row["created_at"],
    )


def _count(status: str) -> int:
    """`DELETE 12`"""
    return int(status.rpartition(" ")[2])
