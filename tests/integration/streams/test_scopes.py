"""Streams of sessions, users and the system: order, locks, retention, deletion."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import asyncpg
import pytest
from tests.support.feed_world import RETENTION, FeedWorld, shown
from tests.support.tree_writer import TEST_AUDIT_KEY

from contextbase.audit.repository import AuditRepository
from contextbase.errors import CursorOutdated, InvalidInput, NotFound, TooLarge
from contextbase.identity.model import PrincipalKind
from contextbase.identity.repository import IdentityRepository
from contextbase.ids import PrincipalId, ProjectId, SystemClock
from contextbase.storage.projects import ProjectService
from contextbase.streams import event_window, service
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import SYSTEM, NewEvent, Position, Scope, ScopeKind, StreamPage
from contextbase.streams.repository import StreamRepository


def event(n: int = 1, kind: str = "step") -> NewEvent:
    return NewEvent(kind=kind, payload={"n": n})


def readable(scope: Scope) -> ReadableScope:
    return ReadableScope(scope=scope)


def a_session() -> Scope:
    return Scope.session(uuid4())


async def read(world: FeedWorld, scope: Scope, after: str | None = "start", limit: int = 1000) -> StreamPage:
    head = await world.streams.head(readable(scope))
    return await world.streams.read(readable(scope), world.streams.position(head, after), limit=limit)


def numbers(page: StreamPage) -> list[int]:
    return [found.number for found in page.events]


async def until(condition: Callable[[], bool]) -> None:
    for _ in range(6000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not happen")


async def publish_at_once(world: FeedWorld, scope: Scope) -> None:
    """Without waiting for any lock."""
    async with world.gate.database.transaction() as connection:
        await connection.execute("SET LOCAL lock_timeout = '100ms'")
        await world.streams.append(connection, scope, [event()])


async def test_each_scope_counts_by_itself(world: FeedWorld) -> None:
    one, two = a_session(), a_session()
    assert await world.streams.publish(one, event(), event()) == [1, 2]
    assert await world.streams.publish(two, event()) == [1]
    assert await world.streams.publish(SYSTEM, event()) == [1]
    assert await world.publish(event()) == 1
    assert await world.streams.publish(one, event()) == [3]
    assert shown(await world.read()) == [("step",)]


async def test_going_on_from_each_position_gives_everything_once(world: FeedWorld) -> None:
    scope = a_session()
    await world.streams.publish(scope, *(event(n) for n in range(7)))
    found, after, more = [], "start", True
    while more:
        page = await read(world, scope, after, limit=3)
        found += numbers(page)
        after, more = str(page.position), page.more
    assert found == list(range(1, 8))
    assert numbers(await read(world, scope, None)) == []


async def test_a_reader_that_came_before_the_first_event_misses_nothing(world: FeedWorld) -> None:
    scope = a_session()
    page = await read(world, scope, None)
    assert (page.events, page.more) == ((), False)
    await world.streams.publish(scope, event(), event())
    assert numbers(await read(world, scope, str(page.position))) == [1, 2]


async def test_a_follower_that_came_before_the_first_event_gets_every_one_in_order(world: FeedWorld) -> None:
    scope, found = a_session(), []

    async def follow() -> None:
        position = Position()
        async with asyncio.timeout(60), world.streams.follow(readable(scope)) as follower:
            while len(found) < 30:
                page = await follower.read(position)
                position = page.position
                found.extend(numbers(page))
                if not page.events:
                    await follower.wait(position, 60)

    reader = asyncio.create_task(follow())
    await until(lambda: scope in world.streams.followed)
    for _ in range(10):
        await world.streams.publish(scope, event(), event(), event())
    await reader
    assert found == list(range(1, 31))
    assert world.streams.followed == frozenset()


@pytest.mark.parametrize("kept", [2, 1000])
async def test_a_follower_gets_all_of_a_burst_whether_the_window_has_it_or_not(
    world: FeedWorld, monkeypatch: pytest.MonkeyPatch, kept: int
) -> None:
    monkeypatch.setattr(event_window, "_MOST_KEPT", kept)
    monkeypatch.setattr(event_window, "_AT_ONCE", 4)
    scope, found = a_session(), []
    await world.streams.publish(scope, event())
    position = (await world.streams.head(readable(scope))).position
    async with asyncio.timeout(60), world.streams.follow(readable(scope)) as follower:
        await until(lambda: follower.is_past(Position()))
        await world.streams.publish(scope, *(event(n) for n in range(20)))
        while len(found) < 20:
            page = await follower.read(position, limit=3)
            position = page.position
            found += numbers(page)
            if not page.events:
                await follower.wait(position, 60)
    assert found == list(range(2, 22))


async def test_a_session_takes_ten_thousand_events_while_every_project_is_locked(world: FeedWorld) -> None:
    scope = a_session()
    async with world.gate.database.transaction() as locker:
        await locker.execute("SELECT FROM projects FOR UPDATE")
        async with asyncio.timeout(300):
            for start in range(0, 10_000, 50):
                await world.streams.publish(scope, *(event(n) for n in range(start, start + 50)))
            await world.streams.publish(Scope.user(world.gate.owner.principal.id), event())
            await world.streams.publish(SYSTEM, event())
        # A project's own event would have had to wait.
        with pytest.raises(asyncpg.LockNotAvailableError):
            await publish_at_once(world, Scope.project(world.gate.project.id))
    assert (await world.streams.head(readable(scope))).number == 10_000


async def test_an_event_whose_transaction_ends_late_holds_up_its_own_scope_and_no_other(world: FeedWorld) -> None:
    slow, other = a_session(), a_session()
    async with world.gate.database.transaction() as connection:
        await world.streams.append(connection, slow, [event(kind="slow")])
        quick = asyncio.create_task(world.streams.publish(slow, event(kind="quick")))
        async with asyncio.timeout(60):
            await world.streams.publish(other, event())
        assert not quick.done()
        assert (await read(world, slow)).events == ()
    await quick
    assert [found.kind for found in (await read(world, slow)).events] == ["slow", "quick"]


async def test_events_go_with_the_retention_of_their_scope_and_a_sessions_stay(
    world: FeedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_BATCH", 2)
    scopes = {
        ScopeKind.PROJECT: Scope.project(world.gate.project.id),
        ScopeKind.USER: Scope.user(world.gate.owner.principal.id),
        ScopeKind.SYSTEM: SYSTEM,
        ScopeKind.SESSION: a_session(),
    }
    for scope in scopes.values():
        await world.streams.publish(scope, *(event(n) for n in range(6)))
    for kind, age in RETENTION.items():
        async with world.gate.database.connection() as connection:
            await connection.execute(
                "UPDATE stream_events SET created_at = created_at - $2::interval WHERE scope_kind = $1 AND number <= 5",
                kind, age + timedelta(hours=1),
            )  # fmt: skip
            await connection.execute(
                "UPDATE stream_events SET created_at = created_at - $2::interval WHERE scope_kind = $1 AND number = 6",
                kind, age - timedelta(hours=1),
            )  # fmt: skip
    async with world.gate.database.connection() as connection:
        await connection.execute(
            "UPDATE stream_events SET created_at = created_at - interval '9 years' WHERE scope_kind = 'session'"
        )
    assert await world.streams.prune() == 15
    kept = {kind: numbers(await read(world, scope)) for kind, scope in scopes.items()}
    assert kept == {
        ScopeKind.PROJECT: [6], ScopeKind.USER: [6], ScopeKind.SYSTEM: [6], ScopeKind.SESSION: [1, 2, 3, 4, 5, 6],
    }  # fmt: skip
    assert (await read(world, SYSTEM)).position.number == 6


async def test_a_deleted_stream_is_gone_for_its_followers_and_starts_over_under_another_epoch(
    world: FeedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "_BATCH", 2)
    scope, bystander = a_session(), a_session()
    for one in (scope, bystander):
        await world.streams.publish(one, *(event(n) for n in range(5)))
    old = (await world.streams.head(readable(scope))).position

    async def follow() -> None:
        async with asyncio.timeout(60), world.streams.follow(readable(scope)) as follower:
            while True:
                await follower.read(old)
                await follower.wait(old, 60)

    reader = asyncio.create_task(follow())
    async with asyncio.timeout(60), world.streams.follow(readable(scope)) as follower:
        await until(lambda: follower.is_past(Position()))  # the shared window knows the stream
        await world.streams.delete(scope)
        with pytest.raises(NotFound):
            await reader
    assert (await read(world, scope)).events == ()
    assert numbers(await read(world, bystander)) == [1, 2, 3, 4, 5]
    assert await world.streams.publish(scope, event()) == [1]
    with pytest.raises(CursorOutdated):
        await read(world, scope, str(old))


async def test_deleting_a_projects_stream_leaves_its_counter(world: FeedWorld) -> None:
    await world.publish(event())
    await world.streams.delete(Scope.project(world.gate.project.id))
    assert shown(await world.read()) == []
    assert await world.publish(event()) == 2


async def test_a_project_that_is_deleted_loses_its_events(world: FeedWorld) -> None:
    session, project_id = a_session(), world.gate.project.id
    await world.publish(event())
    await world.streams.publish(session, event())
    projects = ProjectService(database=world.gate.database, audit=AuditRepository(TEST_AUDIT_KEY), clock=SystemClock())
    await projects.delete(world.gate.owner, project_id)
    assert numbers(await read(world, Scope.project(project_id))) == []
    assert numbers(await read(world, session)) == [1]


async def test_a_principal_takes_its_stream_along_and_leaves_no_other(world: FeedWorld) -> None:
    database = world.gate.database
    async with database.transaction() as connection:
        ann = await IdentityRepository().ensure_principal(connection, PrincipalKind.USER, "ann")
    await world.streams.publish(Scope.user(ann.id), NewEvent(kind="hello", principal_id=ann.id, payload={}))
    await world.streams.publish(Scope.user(world.gate.owner.principal.id), event())
    async with database.connection() as connection:
        await connection.execute("DELETE FROM principals WHERE id = $1", ann.id)
        assert await connection.fetchval("SELECT count(*) FROM stream_events WHERE scope_kind = 'user'") == 1
        assert await connection.fetchval("SELECT count(*) FROM stream_heads WHERE scope_kind = 'user'") == 1


async def test_a_project_that_has_a_stream_cannot_be_removed_under_its_commits(world: FeedWorld) -> None:
    async with world.gate.database.connection() as connection:
        with pytest.raises(asyncpg.ForeignKeyViolationError):
            await connection.execute("DELETE FROM projects WHERE id = $1", world.gate.project.id)


@pytest.mark.parametrize(
    "scope", [Scope.user(PrincipalId(uuid4())), Scope.project(ProjectId(uuid4()))], ids=["user", "project"]
)
async def test_nothing_is_published_to_who_does_not_exist(world: FeedWorld, scope: Scope) -> None:
    with pytest.raises(NotFound):
        await world.streams.publish(scope, event())


@pytest.mark.parametrize(
    "wrong",
    [
        NewEvent(kind="", payload={}),
        NewEvent(kind="k" * 101, payload={}),
        NewEvent(kind="k", payload={"x": object()}),
        NewEvent(kind="k", payload={"x": float("nan")}),
        NewEvent(kind="k", payload={"x": "\ud800"}),
        NewEvent(kind="k", payload={"x": "a\x00b"}),
    ],
    ids=["no kind", "long kind", "no JSON", "not a number", "lone surrogate", "NUL"],
)
async def test_what_cannot_be_stored_is_refused_before_anything_is(world: FeedWorld, wrong: NewEvent) -> None:
    with pytest.raises(InvalidInput):
        await world.streams.publish(SYSTEM, event(), wrong)
    assert (await read(world, SYSTEM)).events == ()


async def test_a_backslash_before_u0000_is_no_nul(world: FeedWorld) -> None:
    payload = {"x": "\\u0000", "y": "\\\\u0000"}
    await world.streams.publish(SYSTEM, NewEvent(kind="k", payload=payload))
    [found] = (await read(world, SYSTEM)).events
    assert found.payload == payload


async def test_a_large_payload_is_not_appended_unless_it_was_prepared(world: FeedWorld) -> None:
    large = NewEvent(kind="big", payload={"x": "x" * 9000})
    async with world.gate.database.transaction() as connection:
        with pytest.raises(TooLarge):
            await world.streams.append(connection, SYSTEM, [large])
    prepared = await world.streams.prepared(large, event())
    async with world.gate.database.transaction() as connection:
        assert await world.streams.append(connection, SYSTEM, prepared) == [1, 2]


@pytest.mark.parametrize("text", ["", "1", "x.1", "{epoch}", "{epoch}.-1", "{epoch}.1.2", "{epoch}." + "9" * 30])
async def test_what_is_no_position_is_invalid(world: FeedWorld, text: str) -> None:
    await world.streams.publish(SYSTEM, event())
    epoch = (await world.streams.head(readable(SYSTEM))).epoch
    with pytest.raises(InvalidInput):
        await read(world, SYSTEM, text.format(epoch=epoch))


async def test_a_position_of_a_future_that_is_not_ours_is_refused(world: FeedWorld) -> None:
    await world.streams.publish(SYSTEM, event())
    epoch = (await world.streams.head(readable(SYSTEM))).epoch
    for text in (f"{epoch}.2", f"{uuid4()}.1"):
        with pytest.raises(CursorOutdated):
            await read(world, SYSTEM, text)


async def test_nothing_appended_takes_no_number(world: FeedWorld) -> None:
    async with world.gate.database.transaction() as connection:
        assert await StreamRepository().append(connection, SYSTEM, []) == []
    assert not (await world.streams.head(readable(SYSTEM))).exists
