"""The stream's own rules, with the connection's two ends in the test's hands."""

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
from tests.support.feed_world import FeedWorld
from tests.support.gate_world import write

from contextbase.errors import Unauthenticated
from contextbase.identity.model import Caller
from contextbase.interfaces.api import feed_reader
from contextbase.interfaces.api.event_stream import EventStream
from contextbase.interfaces.api.feed_reader import FeedConnection
from contextbase.interfaces.api.feed_stream import FeedSource


class Connection:
    """What the server sent so far, and the ways in which a reader behaves."""

    def __init__(self) -> None:
        self.body = b""
        self.ended = False
        self.reads = asyncio.Event()
        self.reads.set()
        self.left = asyncio.Event()

    async def send(self, message: dict[str, Any]) -> None:
        if not self.left.is_set():
            await asyncio.wait({asyncio.ensure_future(self.reads.wait()), asyncio.ensure_future(self.left.wait())},
                               return_when=asyncio.FIRST_COMPLETED)  # fmt: skip
        self.body += message.get("body", b"")
        self.ended |= message["type"] == "http.response.body" and not message.get("more_body", False)

    async def receive(self) -> dict[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    async def has(self, condition: Callable[[bytes], bool]) -> None:
        for _ in range(1000):
            if condition(self.body):
                return
            await asyncio.sleep(0.01)
        raise AssertionError(self.body)


@pytest.fixture
def caller(world: FeedWorld, monkeypatch: pytest.MonkeyPatch) -> SimpleNamespace:
    """Who the stream's token stands for; None once it was revoked."""
    box = SimpleNamespace(who=world.gate.owner)

    async def authenticate(_: object) -> Caller:
        if box.who is None:
            raise Unauthenticated("The token was revoked.")
        who: Caller = box.who
        return who

    monkeypatch.setattr(feed_reader, "authenticate", authenticate)
    return box


async def open_stream(world: FeedWorld, connection: Connection, **options: float) -> "asyncio.Task[None]":
    services: Any = SimpleNamespace(feed=world.feed, gate=world.gate.gate, database=world.gate.database)
    request: Any = None
    reader = FeedConnection(request, services, world.gate.project.id, None)
    heads, cursor = await reader.start(None)
    stream = EventStream(FeedSource(reader, heads, cursor), **options)
    task = asyncio.create_task(stream({"type": "http"}, connection.receive, connection.send))  # type: ignore[arg-type]  # messages are dicts
    await connection.has(lambda body: b"retry:" in body)
    return task


async def test_a_revoked_token_ends_its_streams(
    world: FeedWorld, caller: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(feed_reader, "AUTHORISED_SECONDS", 0.0)
    connection = Connection()
    task = await open_stream(world, connection)
    caller.who = None
    await world.gate.commit(write("a", b"1", 0))
    await asyncio.wait_for(task, 30)
    assert connection.ended
    assert b'"path":"a"' not in connection.body


@pytest.mark.usefixtures("caller")
async def test_a_reader_that_left_is_forgotten_at_the_next_heartbeat(world: FeedWorld) -> None:
    connection = Connection()
    task = await open_stream(world, connection, heartbeat_seconds=0.1)
    connection.left.set()
    await asyncio.wait_for(task, 30)
    assert not world.feed.followed


async def test_heartbeats_move_the_cursor_past_what_is_hidden_and_say_nothing_else(
    world: FeedWorld, caller: SimpleNamespace
) -> None:
    caller.who = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", caller.who)
    connection = Connection()
    task = await open_stream(world, connection, heartbeat_seconds=0.3)
    await connection.has(lambda body: b": .\n\n" in body)
    start = len(connection.body)
    await world.gate.commit(write("secret/a", b"1", 0))
    await world.gate.commit(write("secret/b", b"1", 0))
    await connection.has(lambda body: b".2.0\n\n" in body)
    rest = connection.body[start:].replace(b": .\n\n", b"")
    assert rest.startswith(b"id: ")
    assert b"data" not in rest
    assert b"secret" not in rest
    world.feed.end()
    await task
