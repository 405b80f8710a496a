"""Leases in a database between real processes: kill -9, expiry, machines that have one name, contention, the feed."""

import asyncio
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from tests.support.gate_world import GateWorld, write
from tests.support.lease_world import LeaseWorld, expire_leases, lease_world
from tests.support.postgres import database_copy

from contextbase.db.database import Database, DatabaseAddress
from contextbase.errors import LeaseHeld, NotFound
from contextbase.ids import ProjectId, new_uuid
from contextbase.leases.postgres import PostgresLeases
from contextbase.leases.store import process_among_machines
from contextbase.streams.feed_repository import FeedRepository
from contextbase.streams.model import StreamEvent

_REPOSITORY = Path(__file__).parents[3]


@pytest.fixture
async def address(embedded_database_server: DatabaseAddress) -> AsyncIterator[DatabaseAddress]:
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        yield address


@pytest.fixture
async def world(address: DatabaseAddress, tmp_path: Path) -> AsyncIterator[LeaseWorld]:
    database = await Database.connect(address)
    try:
        async with lease_world(await GateWorld.start(database, tmp_path)) as world:
            yield world
    finally:
        await database.close()


@pytest.fixture
def leases(world: LeaseWorld) -> PostgresLeases:
    return world.of(world.gate.owner)


async def test_the_lease_of_a_killed_holder_goes_to_the_next(
    address: DatabaseAddress, world: LeaseWorld, leases: PostgresLeases
) -> None:
    with _holder(address, world, "", "a", "victim", "300") as holder:
        with pytest.raises(LeaseHeld):
            await leases.acquire("a", owner="two", timeout=0)
        holder.send_signal(signal.SIGKILL)
        # Not even reaped: what is left of the process does not count as alive.
        assert (await leases.acquire("a", owner="two", timeout=60)).owner == "two"
    events = [(event.kind, event.payload["owner"]) for event in await _events(world)]
    assert events[:2] == [("lease.acquired", "victim"), ("lease.blocked", "two")]
    assert events[-2:] == [("lease.cleanup", "victim"), ("lease.acquired", "two")]


async def test_of_another_machine_only_the_heartbeat_tells(
    address: DatabaseAddress, world: LeaseWorld, leases: PostgresLeases
) -> None:
    with _holder(address, world, "another machine", "a", "far", "3") as holder:
        holder.send_signal(signal.SIGKILL)
        holder.wait()
        with pytest.raises(LeaseHeld):
            await leases.acquire("a", owner="near", timeout=0)  # its process is gone, but that cannot be seen here
        assert (await leases.acquire("a", owner="near", timeout=60)).owner == "near"  # when its three seconds are over


async def test_a_holder_is_kept_alive_by_its_own_heartbeat(
    address: DatabaseAddress, world: LeaseWorld, leases: PostgresLeases
) -> None:
    with _holder(address, world, "another machine", "a", "far", "3"):
        (first,) = await leases.active()
        for _ in range(1000):
            (now,) = await leases.active()
            if now.expires_at > first.expires_at:
                break
            await asyncio.sleep(0.01)
        assert now.expires_at > first.expires_at
        assert now.token == first.token


async def test_a_machine_with_the_same_name_and_another_boot_is_not_taken_for_this_one(world: LeaseWorld) -> None:
    here = process_among_machines()
    namesake = replace(here, node=here.node.replace(here.boot, "another boot"), boot="another boot")
    assert namesake.node != here.node
    await world.of(world.gate.owner, node=namesake.node).acquire("a", owner="far")
    assert await world.of(world.gate.owner).locker_of("a") == "far"


async def test_processes_of_two_machines_that_contend_for_a_file_lose_none_of_each_others_lines(
    address: DatabaseAddress, world: LeaseWorld, tmp_path: Path
) -> None:
    file = tmp_path / "shared.txt"
    file.touch()
    workers = [
        _worker(address, world, node, "append", file, f"{node}-{number}", 8)
        for node in ("here", "there")
        for number in range(2)
    ]
    for worker in workers:
        output, _ = await asyncio.to_thread(worker.communicate, timeout=120)
        assert output == b"done\n"
    lines = [line.split() for line in file.read_text().splitlines()]
    expected = [f"{node}-{number}" for node in ("here", "there") for number in range(2) for _ in range(8)]
    assert sorted(owner for owner, _ in lines) == sorted(expected)
    tokens = [int(token) for _, token in lines]
    assert tokens == sorted(set(tokens))


async def test_each_project_has_leases_of_its_own(world: LeaseWorld, leases: PostgresLeases, tmp_path: Path) -> None:
    await leases.acquire("**", owner="one")
    async with lease_world(await GateWorld.start(world.gate.database, tmp_path)) as other:
        await other.of(other.gate.owner).acquire("**", owner="two", timeout=0)
        assert [lease.owner for lease in await leases.active()] == ["one"]


async def test_there_are_no_leases_without_a_project(leases: PostgresLeases) -> None:
    leases._project_id = ProjectId(new_uuid())
    with pytest.raises(NotFound):
        await leases.acquire("a", owner="one")


async def test_commits_go_on_while_a_write_is_fenced_and_others_wait(world: LeaseWorld, leases: PostgresLeases) -> None:
    lease = await leases.acquire("a", owner="one")
    async with leases.fenced(lease):
        waiting = asyncio.create_task(world.of(world.gate.owner).acquire("b", owner="two"))
        await world.gate.commit(write("a", b"1", 0))
    await waiting


async def test_an_event_tells_no_name_that_may_be_hidden(world: LeaseWorld, leases: PostgresLeases) -> None:
    for pattern in ("docs/plan.md", "docs/**", "docs/*/secret.md", "docs/sec*", "**/secret.md", "*.md"):
        await leases.release(await leases.acquire(pattern, owner="one"))
    shown = {(event.path, event.payload["pattern"]) for event in await _events(world)}
    assert shown == {("docs/plan.md", "docs/plan.md"), ("docs", "docs/**"), (None, "**")}


async def test_an_expired_lease_is_not_renewed_by_a_late_heartbeat(world: LeaseWorld, leases: PostgresLeases) -> None:
    await leases.acquire("a", owner="one")
    await expire_leases(world.gate.database)
    await leases.heartbeat()
    assert await leases.active() == ()


async def _events(world: LeaseWorld) -> list[StreamEvent]:
    async with world.gate.database.connection() as connection:
        feed = FeedRepository()
        heads = await feed.heads(connection, world.gate.project.id)
        return await feed.events(connection, heads, 0, 1000)


@contextmanager
def _holder(
    address: DatabaseAddress, world: LeaseWorld, node: str, *arguments: str
) -> Iterator[subprocess.Popen[bytes]]:
    """A process that has the lease."""
    holder = _worker(address, world, node, "hold", *arguments)
    try:
        assert holder.stdout is not None
        assert holder.stdout.readline().startswith(b"held ")
        yield holder
    finally:
        holder.kill()
        holder.communicate()


def _worker(address: DatabaseAddress, world: LeaseWorld, node: str, *arguments: object) -> subprocess.Popen[bytes]:
    place = [address.socket_folder, address.database, world.gate.project.name, node]
    command = [sys.executable, "-m", "tests.support.database_lease_worker", *map(str, (*place, *arguments))]
    return subprocess.Popen(command, cwd=_REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
