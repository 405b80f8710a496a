"""The queue of runs on a real database: order, turns, limits, leases and fences."""

import asyncio
from collections import Counter
from datetime import timedelta
from pathlib import Path

import asyncpg
import pytest
from tests.support.session_world import MACHINES, WAY, SessionWorld

from contextbase.db.database import Database
from contextbase.errors import LeaseLost
from contextbase.machines.repository import MachineRepository
from contextbase.sessions.model import AgentRun, QueueState, RunFacts, RunId
from contextbase.sessions.queue import QueueLimits
from contextbase.sessions.states import ENDED, RunState, may_follow


async def test_a_run_is_claimed_works_and_succeeds(world: SessionWorld) -> None:
    session = await world.session()
    run = await world.send(session, "Tidy up.")
    assert run.state is RunState.QUEUED
    claimed = await world.claim()
    assert (claimed.run.id, claimed.run.attempt, claimed.run.prompt) == (run.id, 1, "Tidy up.")
    assert claimed.session.agent.name.startswith("session-")
    done = await world.walk(claimed.run, RunState.SUCCEEDED, RunFacts(landed={"written": 2}))
    assert done.landed == {"written": 2}
    assert done.ended_at is not None
    assert set(done.phases) == {"queued", *map(str, WAY[:-1])}
    assert await world.queue.claim("m1") == []
    told = [event.payload["state"] for event in await world.events(session) if event.kind == "run.state"]
    assert told == ["queued", *map(str, WAY[1:])]


async def test_runs_of_a_session_go_one_after_the_other(world: SessionWorld) -> None:
    session = await world.session()
    runs = [await world.send(session, f"{n}") for n in range(3)]
    order = []
    for _ in runs:
        [claimed] = await world.queue.claim("m1", limit=10)
        order.append(claimed.run.id)
        assert await world.queue.claim("m2", limit=10) == []
        await world.walk(claimed.run, RunState.SUCCEEDED)
    assert order == [run.id for run in runs]


async def test_an_owner_with_many_runs_does_not_keep_others_waiting(world: SessionWorld) -> None:
    busy, other = await world.person("busy"), await world.person("other")
    for _ in range(6):
        await world.queued(busy)
    late = [(await world.queued(other)).id for _ in range(2)]
    order = [(await world.claim()).run.id for _ in range(5)]
    assert set(late) <= set(order[:4])


async def test_a_higher_priority_goes_first(world: SessionWorld) -> None:
    await world.queued()
    session = await world.session()
    urgent = await world.sessions.send(world.gate.owner, session.id, "Now.", priority=5)
    assert (await world.claim()).run.id == urgent.id


async def test_a_machine_takes_no_more_than_its_limits(database: Database, tmp_path: Path) -> None:
    limits = QueueLimits(most_running=3, most_starting=2)
    async with SessionWorld.opened(database, tmp_path, limits) as world:
        for _ in range(6):
            await world.queued()
        starting = await world.queue.claim("m1", limit=10)
        assert len(starting) == 2
        assert await world.queue.claim("m1", limit=10) == []
        for claimed in starting:
            await world.walk(claimed.run, RunState.RUNNING)
        assert len(await world.queue.claim("m1", limit=10)) == 1
        assert len(await world.queue.claim("m2", limit=10)) == 2
        assert await world.queue.counts() == {
            QueueState.BEHIND: 0, QueueState.READY: 1, QueueState.CLAIMED: 5, QueueState.PARKED: 0,
        }  # fmt: skip


async def test_claims_of_one_machine_at_the_same_moment_keep_its_limit(database: Database, tmp_path: Path) -> None:
    async with SessionWorld.opened(database, tmp_path, QueueLimits(most_running=3)) as world:
        for _ in range(12):
            await world.queued()
        taken = await asyncio.gather(*(world.queue.claim("m1") for _ in range(12)))
        assert sum(map(len, taken)) == 3


async def test_a_session_stays_with_the_machine_that_has_its_folder_while_that_lives(world: SessionWorld) -> None:
    session = await world.session()
    await world.send(session)
    await world.walk((await world.claim("m1")).run, RunState.SUCCEEDED)
    await has_worker(world, session.id, "m1")
    await world.send(session)
    assert await world.queue.claim("m2") == []
    assert await world.queue.expire() == 0
    assert await world.queue.claim("m2") == []
    async with world.database.connection() as connection:
        await connection.execute(
            "UPDATE machines SET seen_at = seen_at - interval '1 d', expires_at = expires_at - interval '1 d' "
            "WHERE name = 'm1'"
        )
    await world.queue.expire()
    assert len(await world.queue.claim("m2")) == 1


async def test_a_drained_machine_gets_the_runs_whose_folder_it_has_and_an_unknown_one_none(world: SessionWorld) -> None:
    session = await world.session()
    await has_worker(world, session.id, "m1")
    await world.queued()
    here = await world.send(session)
    async with world.database.connection() as connection:
        await MachineRepository().drain(connection, "m1", is_draining=True)
    assert await world.queue.claim("nobody", limit=10) == []
    assert [claimed.run.id for claimed in await world.queue.claim("m1", limit=10)] == [here.id]
    assert len(await world.queue.claim("m2", limit=10)) == 1


async def test_a_lease_that_is_over_gives_the_run_to_the_next_attempt_and_the_old_one_changes_nothing(
    world: SessionWorld,
) -> None:
    await world.queued()
    first = await world.walk((await world.claim("m1")).run, RunState.RUNNING)
    assert await world.expire_leases() == 1
    assert (await world.reload(first.id)).reason == "machine_lost"
    second = (await world.claim("m2")).run
    assert (second.id, second.attempt) == (first.id, 2)
    with pytest.raises(LeaseLost):
        await world.runs.move(first.id, 1, RunState.RUNNING, RunState.SYNCING)
    with pytest.raises(LeaseLost):
        await world.queue.fail(first.id, 1, reason="late", message="Too late.")
    assert await world.queue.beat("m1", {first.id: 1}) == {}
    assert await world.queue.beat("m1", {first.id: 2}) == {}
    assert await world.queue.beat("m2", {first.id: 2}) == {first.id: False}
    await world.walk(second, RunState.SUCCEEDED)


async def test_a_run_fails_after_its_last_attempt_and_the_next_one_comes(world: SessionWorld) -> None:
    session = await world.session()
    first, second = await world.send(session), await world.send(session)
    for _ in range(3):
        assert (await world.claim()).run.id == first.id
        await world.expire_leases()
    failed = await world.reload(first.id)
    assert (failed.state, failed.reason, failed.attempt) == (RunState.FAILED, "machine_lost", 3)
    assert (await world.claim()).run.id == second.id


async def test_a_beat_keeps_the_run_and_tells_that_it_is_to_end(world: SessionWorld) -> None:
    run = await world.queued()
    await world.claim("m1")
    assert await world.queue.beat("m1", {run.id: 1}) == {run.id: False}
    await world.sessions.cancel(world.gate.owner, run.id)
    assert await world.queue.beat("m1", {run.id: 1}) == {run.id: True}
    assert await world.runs.is_canceled(run.id)


async def test_a_run_that_is_given_back_comes_again_after_its_delay(world: SessionWorld) -> None:
    await world.queued()
    first = (await world.claim()).run
    await world.queue.release(
        first.id, 1, reason="no_cli", message="The CLI is not there.", delay=timedelta(minutes=1), counts=False
    )
    assert await world.queue.claim("m1") == []
    async with world.database.connection() as connection:
        await connection.execute("UPDATE run_queue SET not_before = clock_timestamp()")
    assert (await world.claim()).run.attempt == 2


async def test_a_parked_run_waits_until_it_is_let_back_in_and_nothing_overtakes_it(world: SessionWorld) -> None:
    session = await world.session()
    asked = await world.send(session)
    await world.send(session)
    running = await world.walk((await world.claim()).run, RunState.RUNNING)
    await world.runs.move(running.id, 1, RunState.RUNNING, RunState.WAITING_HUMAN)
    parked = await world.queue.park(running.id, 1, reason="human", message="Waits for an answer.")
    assert parked.state is RunState.WAITING_HUMAN
    assert await world.queue.claim("m1") == []
    assert await world.queue.unpark(asked.id)
    assert not await world.queue.unpark(asked.id)
    again = (await world.claim()).run
    assert (again.id, again.attempt) == (asked.id, 2)


async def test_the_database_allows_exactly_the_moves_that_the_code_does(world: SessionWorld) -> None:
    for before in reversed(RunState):  # one that is queued last: else it would be claimed in the place of the next
        run = await reaching(world, before)
        for after in set(RunState) - {before}:
            assert await is_allowed(world, run, after) == may_follow(before, after), f"{before} to {after}"


async def test_an_attempt_begins_with_a_claim_alone(world: SessionWorld) -> None:
    run = await reaching(world, RunState.RUNNING)
    async with world.database.connection() as connection:
        with pytest.raises(asyncpg.CheckViolationError):
            await connection.execute("UPDATE agent_runs SET attempt = attempt + 1 WHERE id = $1", run.id)


async def test_the_database_lets_one_run_of_a_session_work(world: SessionWorld) -> None:
    session = await world.session()
    await world.send(session)
    second = await world.send(session)
    await world.claim()
    async with world.database.connection() as connection:
        with pytest.raises(asyncpg.UniqueViolationError):
            await connection.execute("UPDATE agent_runs SET state = 'claimed', attempt = 1 WHERE id = $1", second.id)


async def test_a_thousand_runs_are_done_once_each_by_four_machines(embedded_database: Database, tmp_path: Path) -> None:
    async with SessionWorld.opened(embedded_database, tmp_path) as world:
        people = [await world.person(f"p{n}") for n in range(5)]
        sessions = [await world.session(people[n % 5]) for n in range(100)]
        runs = {(await world.send(sessions[n % 100], who=people[n % 5])).id for n in range(1000)}

        taken: Counter[RunId] = Counter()

        async def work(machine: str) -> None:
            while len(taken) < len(runs):
                for one in await world.queue.claim(machine, limit=8):
                    taken[one.run.id] += 1
                    await world.queue.fail(one.run.id, one.run.attempt, reason="test", message="Done with it.")

        await asyncio.gather(*(work(machine) for machine in MACHINES))
        assert set(taken) == runs
        assert set(taken.values()) == {1}


async def is_allowed(world: SessionWorld, run: AgentRun, after: RunState) -> bool:
    """Tries it, and takes it back."""
    async with world.database.connection() as connection:
        trying = connection.transaction()
        await trying.start()
        try:
            await connection.execute(
                """UPDATE agent_runs
                   SET state = $2, attempt = attempt + $3, ended_at = CASE WHEN $4 THEN clock_timestamp() END
                   WHERE id = $1""",
                run.id, after, int(after is RunState.CLAIMED and run.state is RunState.QUEUED), after in ENDED,
            )  # fmt: skip
        except asyncpg.CheckViolationError:
            return False
        finally:
            await trying.rollback()
    return True


async def reaching(world: SessionWorld, state: RunState) -> AgentRun:
    """A run in that state."""
    run = await world.queued()
    if state is RunState.QUEUED:
        return run
    claimed = (await world.claim()).run
    if state is RunState.WAITING_HUMAN:
        await world.walk(claimed, RunState.RUNNING)
        return await world.runs.move(run.id, 1, RunState.RUNNING, state)
    if state in WAY:
        return await world.walk(claimed, state)
    return await world.runs.move(run.id, 1, RunState.CLAIMED, state, RunFacts(reason="test", message="So it ends."))


async def has_worker(world: SessionWorld, session_id: object, machine: str) -> None:
    async with world.database.connection() as connection:
        await world.repository.put_worker(
            connection,
            session_id,  # type: ignore[arg-type]  # a session's id
            machine=machine,
            container_id="c1",
            workspace_s3_prefix="p",
            executor_version="1",
            at=world.clock.now(),
        )
