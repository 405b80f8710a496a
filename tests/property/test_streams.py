"""Readers of a scope see every event exactly once and in order, whoever appends meanwhile and however long it takes."""

import asyncio
from dataclasses import dataclass
from pathlib import Path
from uuid import uuid4

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.support.feed_world import FeedWorld

from contextbase.db.database import Database
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import NewEvent, Position, Scope


@dataclass(frozen=True)
class Transaction:
    counts: tuple[int, int]  # events for each of the two scopes
    pauses: int  # how often others get their turn between the appending and the end
    kept: bool  # or rolled back


TRANSACTIONS = st.builds(
    Transaction,
    counts=st.tuples(st.integers(0, 4), st.integers(0, 4)),
    pauses=st.integers(0, 8),
    kept=st.integers(0, 4).map(bool),
)
APPENDERS = st.lists(st.lists(TRANSACTIONS, min_size=1, max_size=5), min_size=1, max_size=5)


async def append(world: FeedWorld, scopes: list[Scope], name: int, transactions: list[Transaction]) -> list[list[str]]:
    """Append one transaction after the other; returns what was kept, for each scope."""
    kept: list[list[str]] = [[], []]
    for index, transaction in enumerate(transactions):
        ids = [[f"{name}.{index}.{n}" for n in range(count)] for count in transaction.counts]
        async with world.gate.database.connection() as connection:
            work = connection.transaction()
            await work.start()
            for scope, of_scope in zip(scopes, ids, strict=True):  # in one order, or they wait for each other
                await world.streams.append(connection, scope, [event(one) for one in of_scope])
            for _ in range(transaction.pauses):
                await connection.execute("SELECT pg_sleep(0.001)")
            await (work.commit() if transaction.kept else work.rollback())
        for scope, of_scope, known in zip(scopes, ids, kept, strict=True):
            world.streams.hint(scope)
            known.extend(of_scope if transaction.kept else [])
    return kept


def event(name: str) -> NewEvent:
    return NewEvent(kind="k", payload={"id": name})


async def poll(world: FeedWorld, scope: Scope, limit: int, written: asyncio.Event) -> list[tuple[int, object]]:
    """Read page by page until all is read that was written."""
    seen: list[tuple[int, object]] = []
    position = Position()
    while True:
        done = written.is_set()
        page = await world.streams.read(ReadableScope(scope=scope), position, limit=limit)
        position = page.position
        seen += [(found.number, found.payload["id"]) for found in page.events]
        if done and not page.more:
            return seen
        await asyncio.sleep(0)


async def follow(world: FeedWorld, scope: Scope, limit: int, written: asyncio.Event) -> list[tuple[int, object]]:
    """The same through the window that followers share."""
    seen: list[tuple[int, object]] = []
    position = Position()
    async with world.streams.follow(ReadableScope(scope=scope)) as follower:
        while True:
            done = written.is_set()
            page = await follower.read(position, limit=limit)
            position = page.position
            seen += [(found.number, found.payload["id"]) for found in page.events]
            if done and position.number == (await world.streams.head(ReadableScope(scope=scope))).number:
                return seen
            if not page.events:
                await follower.wait(position, 0.01 if done else 0.05)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(appenders=APPENDERS, limit=st.integers(1, 7))
async def test_readers_of_two_scopes_see_every_event_once_and_in_order(
    embedded_database: Database, tmp_path: Path, appenders: list[list[Transaction]], limit: int
) -> None:
    async with FeedWorld.opened(embedded_database, tmp_path) as world, asyncio.timeout(120):
        scopes = [Scope.project(world.gate.project.id), Scope.session(uuid4())]
        written = asyncio.Event()
        async with asyncio.TaskGroup() as readers:
            polled = [readers.create_task(poll(world, scope, limit, written)) for scope in scopes]
            followed = [readers.create_task(follow(world, scope, limit, written)) for scope in scopes]
            kept = await asyncio.gather(
                *(append(world, scopes, name, transactions) for name, transactions in enumerate(appenders))
            )
            written.set()
        for index, seen in enumerate(task.result() for task in polled):
            expected = [of_appender[index] for of_appender in kept]
            assert [number for number, _ in seen] == list(range(1, sum(map(len, expected)) + 1))
            for name, of_appender in enumerate(expected):
                assert [one for _, one in seen if str(one).startswith(f"{name}.")] == of_appender
            assert followed[index].result() == seen
