"""What every implementation of the port `LeaseManager` guarantees."""

import asyncio
from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.lease_places import Place, folder_place, postgres_place

from contextbase.db.database import Database
from contextbase.errors import InvalidInput, LeaseHeld, LeaseLost
from contextbase.leases import DEFAULT_TTL, LeaseEvent, LeaseEventKind, LeaseManager

_MOMENT = timedelta(seconds=1)


@pytest.fixture
async def in_folder(tmp_path: Path) -> AsyncIterator[Place]:
    async with folder_place(tmp_path / "leases") as place:
        yield place


@pytest.fixture
async def in_postgres(embedded_database: Database) -> AsyncIterator[Place]:
    async with postgres_place(embedded_database) as place:
        yield place


@pytest.fixture(params=["folder", "postgres"])
def place(request: pytest.FixtureRequest) -> Place:
    found = request.getfixturevalue(f"in_{request.param}")
    assert isinstance(found, Place)
    return found


@pytest.fixture
def leases(place: Place) -> LeaseManager:
    return place.connect()


async def test_a_lease_is_seen_by_everybody_until_it_is_released(place: Place, leases: LeaseManager) -> None:
    other = place.connect()
    lease = await leases.acquire("src/a.py", owner="one")
    assert (lease.owner, lease.pattern, lease.depth) == ("one", "src/a.py", 1)
    assert lease.expires_at - lease.acquired_at == DEFAULT_TTL == timedelta(minutes=5)
    assert await other.is_locked("src/a.py")
    assert await other.locker_of("src/a.py") == "one"
    assert await other.active() == (lease,)
    await leases.release(lease)
    assert not await other.is_locked("src/a.py")
    assert await other.locker_of("src/a.py") is None
    assert await other.active() == ()


async def test_a_held_lease_is_refused_at_once_to_who_only_tries(place: Place, leases: LeaseManager) -> None:
    await leases.acquire("a", owner="one")
    with pytest.raises(LeaseHeld, match="one has a lease on a") as refused:
        await place.connect().acquire("a", owner="two", timeout=0)
    assert refused.value.details["held_by"] == "one"
    await leases.acquire("b", owner="two", timeout=0)


async def test_a_blocked_one_waits_and_has_the_lease_once_it_is_released(place: Place, leases: LeaseManager) -> None:
    blocked = asyncio.Event()
    other = place.connect(on_event=lambda event: event.kind is LeaseEventKind.BLOCKED and blocked.set())
    first = await leases.acquire("a", owner="one")
    waiting = asyncio.create_task(other.acquire("a", owner="two"))
    await blocked.wait()
    assert not waiting.done()
    await leases.release(first)
    second = await waiting
    assert (second.owner, second.token > first.token) == ("two", True)


async def test_who_stops_waiting_leaves_nothing_behind(place: Place, leases: LeaseManager) -> None:
    blocked = asyncio.Event()
    other = place.connect(on_event=lambda event: event.kind is LeaseEventKind.BLOCKED and blocked.set())
    first = await leases.acquire("a", owner="one")
    waiting = asyncio.create_task(other.acquire("a", owner="two"))
    await blocked.wait()
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    await leases.release(first)
    assert await leases.active() == ()


async def test_a_wait_ends_with_its_timeout(place: Place, leases: LeaseManager) -> None:
    await leases.acquire("a", owner="one")
    with pytest.raises(LeaseHeld):
        await place.connect().acquire("a", owner="two", timeout=0.05)
    assert [lease.owner for lease in await leases.active()] == ["one"]


async def test_its_owner_may_have_a_lease_again_and_releases_it_as_often(place: Place, leases: LeaseManager) -> None:
    first = await leases.acquire("a", owner="one")
    again = await leases.acquire("a", owner="one", timeout=0)
    assert (again.token, again.depth) == (first.token, 2)
    await leases.release(again)
    assert await leases.is_locked("a")
    await leases.release(first)
    assert not await leases.is_locked("a")
    await leases.release(first)  # once more does no harm
    await place.connect().acquire("a", owner="two", timeout=0)


async def test_an_owner_is_not_in_its_own_way_whatever_overlaps(leases: LeaseManager) -> None:
    folder = await leases.acquire("src/**", owner="one")
    file = await leases.acquire("src/a.py", owner="one", timeout=0)
    assert file.token > folder.token
    await leases.release(folder)
    assert await leases.locker_of("src/a.py") == "one"
    assert not await leases.is_locked("src/b.py")


async def test_a_pattern_reserves_all_it_matches(place: Place, leases: LeaseManager) -> None:
    await leases.acquire("src/**", owner="one")
    other = place.connect()
    for pattern in ("src/a.py", "src", "src/deep/er.py", "**/er.py", "*/a.py", "s*/**"):
        with pytest.raises(LeaseHeld):
            await other.acquire(pattern, owner="two", timeout=0)
    await other.acquire("docs/**", owner="two", timeout=0)
    await other.acquire("srcs/a.py", owner="two", timeout=0)


@pytest.mark.parametrize("pattern", ["", "/", "../a", "a//b", "a/***", "a\nb", ".contextbase/x"])
async def test_what_is_no_pattern_is_refused(leases: LeaseManager, pattern: str) -> None:
    with pytest.raises(InvalidInput):
        await leases.acquire(pattern, owner="one")


async def test_an_owner_has_a_name(leases: LeaseManager) -> None:
    with pytest.raises(InvalidInput):
        await leases.acquire("a", owner="")


async def test_a_lease_without_heartbeats_expires_and_goes_to_the_next(place: Place, leases: LeaseManager) -> None:
    await leases.acquire("a", owner="one")
    place.clock.move(DEFAULT_TTL - _MOMENT)
    assert await leases.is_locked("a")
    place.clock.move(_MOMENT)
    assert not await leases.is_locked("a")
    assert await leases.active() == ()
    assert (await place.connect().acquire("a", owner="two", timeout=0)).owner == "two"


async def test_a_heartbeat_keeps_a_lease(place: Place, leases: LeaseManager) -> None:
    lease = await leases.acquire("a", owner="one")
    for _ in range(3):
        place.clock.move(DEFAULT_TTL - _MOMENT)
        await leases.heartbeat()
    (kept,) = await leases.active()
    assert (kept.token, kept.expires_at) == (lease.token, place.clock.now() + DEFAULT_TTL)
    async with leases.fenced(lease):
        pass


async def test_a_heartbeat_renews_nobody_elses_lease(place: Place, leases: LeaseManager) -> None:
    await leases.acquire("a", owner="one")
    other = place.connect()
    await other.acquire("b", owner="two")
    place.clock.move(DEFAULT_TTL - _MOMENT)
    await other.heartbeat()
    place.clock.move(_MOMENT)
    assert [lease.owner for lease in await leases.active()] == ["two"]


async def test_a_late_writer_is_refused_by_the_fence(place: Place, leases: LeaseManager) -> None:
    late = await leases.acquire("a", owner="one")
    async with leases.fenced(late):
        pass
    place.clock.move(DEFAULT_TTL)
    other = place.connect()
    current = await other.acquire("a", owner="two", timeout=0)
    await leases.heartbeat()  # too late, too
    with pytest.raises(LeaseLost, match="has ended"):
        async with leases.fenced(late):
            pytest.fail("it was let in")
    async with other.fenced(current):
        pass
    await leases.release(late)
    assert await other.locker_of("a") == "two"


async def test_an_expired_lease_is_lost_even_if_nobody_else_wants_it(place: Place, leases: LeaseManager) -> None:
    lease = await leases.acquire("a", owner="one")
    place.clock.move(DEFAULT_TTL)
    await leases.heartbeat()
    with pytest.raises(LeaseLost):
        async with leases.fenced(lease):
            pytest.fail("it was let in")


async def test_nobody_gets_a_lease_while_a_write_is_fenced(place: Place, leases: LeaseManager) -> None:
    lease = await leases.acquire("a", owner="one")
    other = place.connect()
    async with leases.fenced(lease):
        place.clock.move(DEFAULT_TTL)
        taking = asyncio.create_task(other.acquire("a", owner="two"))
        done, _ = await asyncio.wait({taking}, timeout=0.1)
        assert not done
    assert (await taking).owner == "two"


async def test_a_fenced_block_ends_however_many_wait_for_it(place: Place, leases: LeaseManager) -> None:
    lease = await leases.acquire("a", owner="one")
    async with leases.fenced(lease):
        others = [place.connect() for _ in range(40)]
        waiting = [asyncio.create_task(other.acquire("b", owner="two")) for other in others]
        await asyncio.sleep(0.05)
        await asyncio.to_thread(int)  # threads are left for who works in the block
    assert {task.pattern for task in await asyncio.gather(*waiting)} == {"b"}


async def test_tokens_only_grow_also_when_the_clock_goes_back(place: Place) -> None:
    tokens = []
    for turn in range(6):
        leases = place.connect()
        lease = await leases.acquire(f"file-{turn % 2}", owner="one")
        tokens.append(lease.token)
        await leases.close()
        place.clock.move(timedelta(hours=-1))
    assert tokens == sorted(set(tokens))


async def test_all_of_an_owners_leases_are_released_at_once(place: Place, leases: LeaseManager) -> None:
    for pattern in ("a", "b", "b"):
        await leases.acquire(pattern, owner="one")
    await leases.acquire("c", owner="two")
    assert await place.connect().release_all("one") == 2
    assert [lease.owner for lease in await leases.active()] == ["two"]
    assert await leases.release_all("one") == 0


async def test_closing_releases_what_was_acquired_here_and_nothing_else(place: Place, leases: LeaseManager) -> None:
    other = place.connect()
    await leases.acquire("a", owner="one")
    await leases.acquire("a", owner="one")
    await other.acquire("a", owner="one")
    await other.acquire("b", owner="two")
    await leases.close()
    assert [(lease.pattern, lease.depth) for lease in await other.active()] == [("a", 1), ("b", 1)]


async def test_what_expired_is_cleaned_up_and_named(place: Place, leases: LeaseManager) -> None:
    old = await leases.acquire("a", owner="one")
    place.clock.move(DEFAULT_TTL)
    new = await leases.acquire("b", owner="two")
    assert new.token > old.token
    assert await place.connect().clean() == ()  # the acquire has done it
    place.clock.move(DEFAULT_TTL)
    assert [lease.token for lease in await leases.clean()] == [new.token]


async def test_every_event_is_told(place: Place) -> None:
    events: list[LeaseEvent] = []
    leases = place.connect(on_event=events.append)
    first = await leases.acquire("a", owner="one")
    with pytest.raises(LeaseHeld):
        await leases.acquire("a", owner="two", timeout=0)
    await leases.release(first)
    stale = await leases.acquire("b", owner="one")
    place.clock.move(DEFAULT_TTL)
    await leases.clean()
    told = [(event.kind, event.pattern, event.owner, event.token, event.blocked_by) for event in events]
    assert told == [
        (LeaseEventKind.ACQUIRED, "a", "one", first.token, ""),
        (LeaseEventKind.BLOCKED, "a", "two", None, "one"),
        (LeaseEventKind.RELEASED, "a", "one", first.token, ""),
        (LeaseEventKind.ACQUIRED, "b", "one", stale.token, ""),
        (LeaseEventKind.CLEANUP, "b", "one", stale.token, ""),
    ]


async def test_fifty_contenders_have_it_one_after_the_other(place: Place) -> None:
    inside = 0
    tokens: list[int] = []

    async def contend(number: int) -> None:
        nonlocal inside
        leases = place.connect()
        lease = await leases.acquire("a", owner=f"worker-{number}")
        assert inside == 0
        inside += 1
        assert [each.owner for each in await leases.active()] == [lease.owner]
        inside -= 1
        tokens.append(lease.token)
        await leases.release(lease)

    await asyncio.gather(*(contend(number) for number in range(50)))
    assert len(tokens) == 50
    assert tokens == sorted(set(tokens))
