"""Messages while a run works: they wait, go into the working turn, or end it."""

from uuid import UUID

from tests.integration.sessions.test_run_log import event, running
from tests.support.session_world import SessionWorld

from contextbase.sessions.model import AgentRun, AgentSession, RunWishes
from contextbase.sessions.states import RunState
from contextbase.vocabulary import SendMode


async def steer(world: SessionWorld, session: AgentSession, text: str) -> AgentRun:
    wishes = RunWishes(mode=SendMode.STEER)
    return await world.sessions.send(world.gate.owner, session.id, text, wishes=wishes)


async def test_a_message_that_the_turn_does_not_take_runs_after_it(world: SessionWorld) -> None:
    session, run = await running(world)
    message = await steer(world, session, "Blue.")
    assert await world.queue.steering([session.id]) == {session.id: [message.id]}
    await world.walk(run, RunState.SUCCEEDED)
    assert (await world.claim()).run.id == message.id


async def test_an_agent_that_cannot_be_steered_and_one_at_rest_get_the_message_later(world: SessionWorld) -> None:
    session = await world.session(provider="opencode")
    assert (await steer(world, session, "First.")).mode is SendMode.QUEUE
    await world.walk((await world.claim()).run, RunState.RUNNING)
    assert (await steer(world, session, "Second.")).mode is SendMode.QUEUE
    assert await world.queue.steering([session.id]) == {}


async def test_an_interruption_ends_what_works_and_runs_next(world: SessionWorld) -> None:
    session, run = await running(world)
    wishes = RunWishes(mode=SendMode.INTERRUPT)
    message = await world.sessions.send(world.gate.owner, session.id, "Stop. Do this.", wishes=wishes)
    assert (await world.reload(run.id)).is_canceled
    await world.runs.move(run.id, run.attempt, RunState.RUNNING, RunState.CANCELED)
    assert (await world.claim()).run.id == message.id


async def test_an_executor_ends_no_message_that_was_not_for_its_turn(world: SessionWorld) -> None:
    session, run = await running(world)
    waiting, other = await world.send(session, "Later."), await world.session()
    elsewhere = await steer(world, other, "Not yours.")
    mine = await steer(world, session, "Mine.")
    for n, claimed in enumerate((waiting.id, elsewhere.id, UUID(int=7), mine.id, mine.id), start=1):
        await world.log.append(run.id, 1, [event(n, "message.steered", steer_id=str(claimed), text="Invented.")])
    assert [(await world.reload(one.id)).state for one in (waiting, elsewhere)] == [RunState.QUEUED] * 2
    taken = await world.reload(mine.id)
    assert (taken.state, taken.reason) == (RunState.SUCCEEDED, "steered")
    told = [one.payload["text"] for one in await world.events(session) if one.kind == "message.steered"]
    assert told == ["", "", "", "Mine.", "Mine."]
    await world.walk(run, RunState.SUCCEEDED)
    assert (await world.claim()).run.id in (waiting.id, elsewhere.id)
