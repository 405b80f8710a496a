"""Where workers should be, by a clock that the tests move: nothing is stopped or removed before it is stored."""

import asyncpg
import pytest
from tests.support.session_world import SessionWorld

from contextbase.errors import NotFound
from contextbase.sessions.lifecycle import SessionLifecycle
from contextbase.sessions.model import AgentSession, SessionWorker, SyncStatus, WorkerState
from contextbase.sessions.states import RunState


def lifecycle(world: SessionWorld) -> SessionLifecycle:
    return SessionLifecycle(
        database=world.database, repository=world.repository, streams=world.streams, clock=world.clock
    )


async def with_worker(world: SessionWorld) -> AgentSession:
    session = await world.session()
    async with world.database.connection() as connection:
        await world.repository.put_worker(
            connection,
            session.id,
            machine="m1",
            container_id="c1",
            workspace_s3_prefix="p",
            executor_version="1",
            at=world.clock.now(),
        )
    return session


async def worker(world: SessionWorld, session: AgentSession) -> SessionWorker:
    async with world.database.connection() as connection:
        found = await world.repository.worker(connection, session.id)
    assert found is not None
    return found


async def synced(world: SessionWorld, session: AgentSession) -> None:
    async with world.database.connection() as connection:
        await world.repository.put_sync(connection, session.id, SyncStatus.SUCCESS, at=world.clock.now())


async def settled(world: SessionWorld, session: AgentSession, state: WorkerState) -> None:
    async with world.database.connection() as connection:
        await world.repository.settle_worker(connection, session.id, state, world.clock.now())


async def test_an_idle_worker_should_stop_be_stored_first_and_be_removed_a_day_later(world: SessionWorld) -> None:
    session, chore = await with_worker(world), lifecycle(world)
    world.clock.pass_by(minutes=19)
    await chore.keep_up()
    assert (await worker(world, session)).desired_state is WorkerState.RUNNING
    world.clock.pass_by(minutes=2)
    await chore.keep_up()
    wanted = await worker(world, session)
    assert (wanted.desired_state, wanted.sync_is_due) == (WorkerState.STOPPED, True)
    with pytest.raises(asyncpg.CheckViolationError):
        await settled(world, session, WorkerState.STOPPED)
    await synced(world, session)
    await settled(world, session, WorkerState.STOPPED)
    world.clock.pass_by(hours=23)
    await chore.keep_up()
    assert (await worker(world, session)).desired_state is WorkerState.STOPPED
    world.clock.pass_by(hours=2)
    await chore.keep_up()
    assert (await worker(world, session)).desired_state is WorkerState.DELETED


async def test_a_pinned_session_and_one_with_a_run_go_on(world: SessionWorld) -> None:
    pinned, busy = await with_worker(world), await with_worker(world)
    await world.sessions.pin(world.gate.owner, pinned.id, pinned=True)
    await world.send(busy)
    world.clock.pass_by(hours=1)
    await lifecycle(world).keep_up()
    for session in (pinned, busy):
        assert (await worker(world, session)).desired_state is WorkerState.RUNNING


async def test_a_worker_that_stopped_cannot_lose_what_was_stored_of_it(world: SessionWorld) -> None:
    session = await with_worker(world)
    await synced(world, session)
    await world.sessions.stop(world.gate.owner, session.id)
    await settled(world, session, WorkerState.STOPPED)
    async with world.database.connection() as connection:
        await world.repository.put_sync(connection, session.id, SyncStatus.FAILED, error="The store is away.")
    assert (await worker(world, session)).last_sync_status is SyncStatus.SUCCESS


async def test_a_deleted_session_goes_with_its_events_once_its_machine_holds_nothing(world: SessionWorld) -> None:
    session, chore = await with_worker(world), lifecycle(world)
    await world.send(session)
    await world.walk((await world.claim()).run, RunState.SUCCEEDED)
    await world.sessions.delete(world.gate.owner, session.id)
    with pytest.raises(NotFound):
        await world.sessions.get(world.gate.owner, session.id)
    await chore.keep_up()
    assert (await worker(world, session)).desired_state is WorkerState.DELETED
    await synced(world, session)
    await settled(world, session, WorkerState.DELETED)
    await chore.keep_up()
    async with world.database.connection() as connection:
        assert await world.repository.find(connection, session.id) is None
    assert await world.events(session) == []
