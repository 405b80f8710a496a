"""The leader's chores on one database: of three servers one does them, until it is killed, stopped or stands still."""

import asyncio
import contextlib
import signal
import sys
from asyncio.subprocess import PIPE, Process
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from prometheus_client import CollectorRegistry
from tests.support.postgres import database_copy

from contextbase.chores import Chore, ChoreRunner, ChoreService, Leadership, Where
from contextbase.chores.metrics import ChoreMetrics
from contextbase.chores.repository import ChoreRepository, Term
from contextbase.db.database import Database, DatabaseAddress
from contextbase.errors import Conflict, DatabaseUnavailable, Unavailable
from contextbase.ids import SystemClock

ROOT = Path(__file__).parents[3]
LEASE = timedelta(seconds=3)
LONGEST = 120.0


async def until(check: Callable[[], Awaitable[object]]) -> None:
    async with asyncio.timeout(LONGEST):
        while not await check():  # noqa: ASYNC110 - other processes do it, and only the database shows it
            await asyncio.sleep(0.02)


@dataclass
class Race:
    database: Database
    servers: dict[str, Process]

    async def done(self) -> list[tuple[str, int]]:
        """Who did the chore in which term, in order."""
        async with self.database.connection() as connection:
            rows = await connection.fetch("SELECT server, term FROM done ORDER BY id")
        return [(row["server"], row["term"]) for row in rows]

    async def leader(self, among: set[str]) -> str:
        """One of these that has done the chore a few times since now."""
        before = Counter(server for server, _ in await self.done())
        found = ""

        async def is_found() -> bool:
            nonlocal found
            since = Counter(server for server, _ in await self.done()) - before
            found = next((server for server, times in since.items() if server in among and times >= 5), "")
            return bool(found)

        await until(is_found)
        return found


@pytest.fixture
async def race(embedded_database_server: DatabaseAddress) -> AsyncIterator[Race]:
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        database = await Database.connect(address, pool_size=4)
        async with database.connection() as connection:
            await connection.execute("CREATE TABLE done (id bigserial, server text, term bigint)")
        servers = {}
        try:
            for name in ("ann", "ben", "cyd"):
                assert address.socket_folder is not None
                servers[name] = await asyncio.create_subprocess_exec(
                    sys.executable, "-m", "tests.support.chore_worker", address.socket_folder, address.database, name,
                    str(LEASE.total_seconds()), cwd=ROOT, stdout=PIPE,
                )  # fmt: skip
            for process in servers.values():
                assert process.stdout is not None
                assert (await process.stdout.readline()).strip() == b"started"
            yield Race(database, servers)
        finally:
            for process in servers.values():
                with contextlib.suppress(ProcessLookupError):
                    process.kill()
                await process.wait()
            await database.close()


def one_at_a_time(done: list[tuple[str, int]]) -> bool:
    """Terms follow each other, and each is one server's."""
    return done == sorted(done, key=lambda one: one[1]) and len(set(done)) == len({term for _, term in done})


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_one_of_three_servers_does_the_chore_and_another_goes_on_when_it_ends(
    race: Race, number: signal.Signals
) -> None:
    left = set(race.servers)
    while left:
        leader = await race.leader(left)
        race.servers[leader].send_signal(number)
        await race.servers[leader].wait()
        left.discard(leader)
    done = await race.done()
    assert {server for server, _ in done} == set(race.servers)
    assert one_at_a_time(done)


async def test_a_leader_that_stands_still_does_nothing_more_when_it_wakes_up(race: Race) -> None:
    first = await race.leader(set(race.servers))
    race.servers[first].send_signal(signal.SIGSTOP)
    second = await race.leader(set(race.servers) - {first})
    race.servers[first].send_signal(signal.SIGCONT)
    await race.leader({second})
    assert one_at_a_time(await race.done())


@dataclass
class Server:
    runner: ChoreRunner
    leadership: Leadership
    runs: list[str]
    problem: Exception | None = None

    async def chore(self) -> None:
        self.runs.append("run")
        if self.problem is not None:
            raise self.problem


def server_on(database: Database, name: str, *, every: timedelta, lease: timedelta = timedelta(minutes=5)) -> Server:
    repository, metrics = ChoreRepository(), ChoreMetrics(CollectorRegistry())
    leadership = Leadership(database=database, repository=repository, server=name, lease=lease, metrics=metrics)
    made: list[Server] = []

    async def run() -> None:
        await made[0].chore()

    runner = ChoreRunner(
        [Chore(name="tidy", every=every, run=run, where=Where.LEADER)],
        database=database,
        repository=repository,
        leadership=leadership,
        server=name,
        metrics=metrics,
        clock=SystemClock(),
    )
    made.append(Server(runner=runner, leadership=leadership, runs=[]))
    return made[0]


@contextlib.asynccontextmanager
async def running(server: Server) -> AsyncIterator[None]:
    task = asyncio.create_task(server.runner.run())
    try:
        async with asyncio.timeout(LONGEST):
            yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def recorded(database: Database, *, by: str) -> None:
    service = ChoreService(database=database, repository=ChoreRepository())

    async def is_recorded() -> bool:
        return [run.server for run in await service.runs()] == [by]

    await until(is_recorded)


async def test_a_new_leader_goes_on_with_the_schedule_of_the_one_before(embedded_database: Database) -> None:
    ann, ben = (server_on(embedded_database, name, every=timedelta(days=1)) for name in ("ann", "ben"))
    service = ChoreService(database=embedded_database, repository=ChoreRepository())
    async with running(ann):
        await recorded(embedded_database, by="ann")
    leader = await service.leader()
    assert leader is not None
    assert (leader.server, leader.is_alive) == ("ann", False), "who stops gives the lead up"
    async with running(ben):

        async def ben_leads() -> bool:
            found = await service.leader()
            return found is not None and (found.server, found.term, found.is_alive) == ("ben", 2, True)

        await until(ben_leads)
    assert (ann.runs, ben.runs) == (["run"], [])
    [run] = await service.runs()
    assert timedelta(hours=21) < run.next_at - run.ended_at < timedelta(hours=27)


async def test_what_failed_is_recorded_and_tried_again_sooner(embedded_database: Database) -> None:
    ann = server_on(embedded_database, "ann", every=timedelta(days=1))
    ann.problem = Unavailable("The resolver is away.")
    async with running(ann):
        await recorded(embedded_database, by="ann")
    [run] = await ChoreService(database=embedded_database, repository=ChoreRepository()).runs()
    assert (run.error, run.failures) == ("unavailable: The resolver is away.", 1)
    assert run.next_at - run.ended_at < timedelta(minutes=2)


async def test_work_behind_the_fence_keeps_others_from_leading_and_not_the_leader_from_renewing(
    embedded_database: Database,
) -> None:
    repository, lease = ChoreRepository(), timedelta(minutes=5)
    ann, ben = uuid4(), uuid4()
    async with embedded_database.connection() as connection:
        term = await repository.take(connection, ann, "ann", lease)
        assert term is not None
        assert await repository.take(connection, ben, "ben", lease) is None

    async def take() -> Term | None:
        async with embedded_database.connection() as connection:
            return await repository.take(connection, ben, "ben", lease)

    async with embedded_database.transaction() as fenced:
        assert await repository.fence(fenced, term, longest_pause=lease)
        async with embedded_database.connection() as connection:
            assert await repository.renew(connection, term, timedelta())  # and it is over at once
        taking = asyncio.create_task(take())
        await waiting_for_a_lock(embedded_database)
        assert not taking.done()
    following = await taking
    assert following is not None
    assert following.number == term.number + 1
    async with embedded_database.transaction() as connection:
        assert not await repository.fence(connection, term, longest_pause=lease)
        assert not await repository.renew(connection, term, lease)


async def test_who_stands_still_behind_the_fence_is_followed_all_the_same(embedded_database: Database) -> None:
    repository = ChoreRepository()
    followed: list[Term | None] = []
    async with embedded_database.connection() as connection:
        term = await repository.take(connection, uuid4(), "ann", timedelta())
    assert term is not None

    async def stand_still() -> None:
        async with embedded_database.transaction() as fenced:
            assert await repository.fence(fenced, term, longest_pause=timedelta(milliseconds=100))
            async with embedded_database.connection() as connection:
                followed.append(await repository.take(connection, uuid4(), "ben", timedelta(minutes=5)))
            await fenced.execute("SELECT 1")

    with pytest.raises(DatabaseUnavailable):
        await stand_still()
    assert [None if following is None else following.number for following in followed] == [term.number + 1]


async def test_who_does_not_lead_gets_no_fence(embedded_database: Database) -> None:
    ann = server_on(embedded_database, "ann", every=timedelta(days=1))
    async with embedded_database.transaction() as connection:
        with pytest.raises(Conflict):
            await ann.leadership.fence(connection)


async def waiting_for_a_lock(database: Database) -> None:
    query = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
    async with database.connection() as connection:
        await until(lambda: connection.fetchval(query))
