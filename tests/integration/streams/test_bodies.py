"""Payloads that are blobs: previews, the whole, and how long the blob stays."""

import json
from datetime import timedelta
from uuid import uuid4

import pytest
from tests.support.feed_world import FeedWorld, server_side
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.repository import AuditRepository
from contextbase.errors import NotFound, TooLarge
from contextbase.ids import ContentHash, SystemClock, TreePath
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.storage.collector import GarbageCollector
from contextbase.storage.fsck import Fsck, FsckProblem
from contextbase.streams.access import ReadableScope
from contextbase.streams.bodies import LARGEST_PAYLOAD_BYTES
from contextbase.streams.model import NewEvent, Position, Scope, StreamEvent

SIZES = pytest.mark.parametrize("length", [20_000, 400_000], ids=["in the database", "in the blob store"])


def event(length: int, **options: object) -> NewEvent:
    return NewEvent(kind="tool", payload={"tool": "bash", "output": "é" * length, "n": 1}, **options)  # type: ignore[arg-type]  # forwarded


async def stored(world: FeedWorld, scope: Scope) -> StreamEvent:
    page = await world.streams.read(ReadableScope(scope=scope), Position())
    return page.events[0]


async def whole(world: FeedWorld, scope: Scope, number: int = 1) -> object:
    content = await world.streams.body(ReadableScope(scope=scope), number)
    return json.loads(b"".join([piece async for piece in content.pieces]))


def collector(world: FeedWorld) -> GarbageCollector:
    spool = SpoolFolder(world.folder / "spool")
    return GarbageCollector(
        database=world.gate.database, store=world.gate.catalog.store, spool=spool, clock=SystemClock()
    )


async def problems(world: FeedWorld) -> list[FsckProblem]:
    fsck = Fsck(database=world.gate.database, store=world.gate.catalog.store, audit=AuditRepository(TEST_AUDIT_KEY))
    return [step.problem async for step in fsck.run() if step.problem]


async def test_a_payload_of_eight_kibibytes_is_in_the_row_and_one_byte_more_is_a_blob(world: FeedWorld) -> None:
    scope = Scope.session(uuid4())
    frame = len('{"x":""}')
    payloads = [{"x": "x" * (LARGEST_PAYLOAD_BYTES - frame + extra)} for extra in (0, 1)]
    await world.streams.publish(scope, *(NewEvent(kind="k", payload=payload) for payload in payloads))
    fits, does_not = (await world.streams.read(ReadableScope(scope=scope), Position())).events
    assert (fits.payload, fits.body) == (payloads[0], None)
    assert does_not.body is not None
    assert does_not.body.size == LARGEST_PAYLOAD_BYTES + 1
    assert await whole(world, scope, 2) == payloads[1]
    with pytest.raises(NotFound):
        await whole(world, scope, 1)
    with pytest.raises(NotFound):
        await whole(world, scope, 3)


@SIZES
async def test_a_large_payload_is_shown_as_a_preview_and_read_whole(world: FeedWorld, length: int) -> None:
    scope = Scope.session(uuid4())
    await world.streams.publish(scope, event(length))
    found = await stored(world, scope)
    assert (found.payload["tool"], found.payload["n"]) == ("bash", 1)
    assert found.payload["output"] == "é" * 500 + "…"
    assert await whole(world, scope) == event(length).payload


@SIZES
async def test_a_body_stays_while_its_event_does_and_goes_after_it(world: FeedWorld, length: int) -> None:
    scope = Scope.session(uuid4())
    await world.streams.publish(scope, event(length))
    assert (await collector(world).run(grace=timedelta(0))).blobs == 0
    assert await whole(world, scope) == event(length).payload
    await world.streams.delete(scope)
    assert (await collector(world).run(grace=timedelta(0))).blobs == 1


async def test_a_body_that_garbage_collection_took_before_its_event_was_stored_is_stored_again(
    world: FeedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    scope = Scope.session(uuid4())
    bodies, rounds = world.streams._bodies, []
    store = bodies.stored

    async def collected_meanwhile(events: tuple[NewEvent, ...]) -> list[NewEvent]:
        made = await store(events)
        if not rounds:
            rounds.append((await collector(world).run(grace=timedelta(0))).blobs)
        return made

    monkeypatch.setattr(bodies, "stored", collected_meanwhile)
    assert await world.streams.publish(scope, event(20_000)) == [1]
    assert rounds == [1]
    assert await whole(world, scope) == event(20_000).payload


@SIZES
async def test_fsck_names_a_body_that_is_missing(world: FeedWorld, length: int) -> None:
    scope = Scope.session(uuid4())
    await world.streams.publish(scope, event(length))
    assert await problems(world) == []
    found = await stored(world, scope)
    assert found.body is not None
    await world.gate.catalog.store.delete(found.body.hash)
    [problem] = await problems(world)
    assert (problem.rule, problem.where) == ("blob", str(found.body.hash))


async def behind_its_back(world: FeedWorld, statement: str) -> None:
    """As a stranger with the superuser's rights would: no triggers, no foreign keys."""
    async with world.gate.database.transaction() as connection:
        await connection.execute("SET LOCAL session_replication_role = replica")
        await connection.execute(statement)


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("DELETE FROM blobs", "event 1 has no blob of its size"),
        ("UPDATE stream_heads SET number = 0", "its last event is 1, but its counter is at 0"),
        ("DELETE FROM stream_heads WHERE scope_kind = 'session'", "its last event is 1, but its counter is at 0"),
    ],
)  # fmt: skip
async def test_fsck_names_rows_that_do_not_fit_together(world: FeedWorld, statement: str, message: str) -> None:
    scope = Scope.session(uuid4())
    await world.streams.publish(scope, event(20_000))
    await behind_its_back(world, statement)
    assert [(one.rule, one.where, one.message) for one in await problems(world)] == [
        ("event", f"session {scope.id}", message)
    ]


async def test_the_body_of_a_projects_event_is_for_those_who_see_its_path(world: FeedWorld) -> None:
    bob = await world.gate.agent("bob")
    await world.gate.rule("secret/**", "hidden", bob)
    for path in ("open", "secret/a"):
        await world.publish(event(20_000, path=TreePath(path)))
    project_id = world.gate.project.id
    for who, number, may in ((None, 1, True), (None, 2, True), (bob, 1, True), (bob, 2, False), (bob, 3, False)):
        viewpoint = await world.viewpoint(who)
        if may:
            content = await world.feed.body(viewpoint, project_id, number)
            assert len(b"".join([piece async for piece in content.pieces])) == content.body.size
        else:
            with pytest.raises(NotFound, match=f"The event {number} of the project has no body of its own"):
                await world.feed.body(viewpoint, project_id, number)


async def test_a_body_over_thirty_two_mebibytes_is_refused(world: FeedWorld) -> None:
    with pytest.raises(TooLarge):
        await world.streams.publish(Scope.session(uuid4()), NewEvent(kind="big", payload={"x": "x" * (32 << 20)}))


async def test_two_events_with_one_content_share_its_blob(world: FeedWorld) -> None:
    scope = Scope.session(uuid4())
    await world.streams.publish(scope, event(20_000), event(20_000))
    async with server_side(world.gate.database, world.folder) as other:
        await other.streams.publish(scope, event(20_000))
    async with world.gate.database.connection() as connection:
        names = await connection.fetch("SELECT DISTINCT content_hash FROM stream_events")
        [row] = names
        assert await connection.fetchval("SELECT count(*) FROM blobs WHERE hash = $1", row["content_hash"]) == 1
        assert ContentHash(row["content_hash"])
