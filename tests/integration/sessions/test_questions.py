"""Questions of agents in the database: who answers them, once, and what becomes of them without an answer."""

from dataclasses import replace
from typing import Any

import pytest
from tests.support.session_world import SessionWorld

from contextbase.agent_vocabulary import QuestionStatus
from contextbase.conversation.questions import HumanQuestion
from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.identity.model import GrantSource
from contextbase.sessions.answers import QuestionReply
from contextbase.sessions.model import AgentRun, RunId
from contextbase.sessions.states import RunState

BLUE = QuestionReply(values=("Blue",))
OPTIONS = [{"value": "Blue", "label": "Blue"}, {"value": "Red", "label": "Red", "description": "As a rose"}]


async def running(world: SessionWorld) -> AgentRun:
    session = await world.session()
    await world.send(session, "Go.")
    return await world.walk((await world.claim()).run, RunState.RUNNING)


def asked(run: AgentRun, name: str = "q1", *, n: int = 1, **data: Any) -> dict[str, Any]:
    about = {"question_id": f"{run.id}:1:{name}", "kind": "question", "prompt": "Which colour?", "options": OPTIONS}
    return {"n": n, "type": "human_loop.requested", "ts": "2026-01-01T00:00:01Z", "data": about | data}


async def question(world: SessionWorld, run: AgentRun, name: str = "q1", **data: Any) -> HumanQuestion:
    await world.log.append(run.id, run.attempt, [asked(run, name, **data)])
    [found] = [one for one in await questions(world, run) if one.question_id.endswith(name)]
    return found


async def questions(world: SessionWorld, run: AgentRun) -> list[HumanQuestion]:
    return [one.question for one in await world.questions.of_run(world.gate.owner, run.id)]


async def reply(world: SessionWorld, one: HumanQuestion, answer: QuestionReply = BLUE) -> HumanQuestion:
    run_id = RunId(one.run_id)
    return (await world.questions.reply(world.gate.owner, run_id, one.question_id, answer)).question


async def test_the_same_answer_counts_once_and_another_one_is_refused(world: SessionWorld) -> None:
    run = await running(world)
    one = await question(world, run)
    assert one.status is QuestionStatus.PENDING
    for _ in range(2):
        answered = await reply(world, one)
        assert answered.response is not None
        assert (answered.status, answered.response.answer) == (QuestionStatus.ANSWERED, {"values": ["Blue"]})
        assert answered.response.responder == str(world.gate.owner.principal)
    with pytest.raises(Conflict):
        await reply(world, one, QuestionReply(values=("Red",)))
    session = (await world.sessions.get(world.gate.owner, run.session_id)).session
    assert [event.kind for event in await world.events(session)].count("human_loop.resolved") == 1


async def test_an_event_sent_again_is_one_question(world: SessionWorld) -> None:
    run = await running(world)
    await world.log.append(run.id, 1, [asked(run), asked(run, n=2, prompt="Another?")])
    await world.log.append(run.id, 1, [asked(run)])
    assert [one.prompt for one in await questions(world, run)] == ["Which colour?"]


async def test_only_the_owner_answers_and_no_agent_in_any_guise(world: SessionWorld) -> None:
    run = await running(world)
    one = await question(world, run)
    session = (await world.sessions.get(world.gate.owner, run.session_id)).session
    grant = replace(world.gate.owner.grant, source=GrantSource.RUN, token_id=None)
    agent = replace(world.gate.owner, principal=session.agent)
    for caller in (session.caller(), agent, replace(world.gate.owner, grant=grant)):
        with pytest.raises(Forbidden):
            await world.questions.reply(caller, run.id, one.question_id, BLUE)
    with pytest.raises(NotFound):
        await world.questions.reply(await world.person("ann"), run.id, one.question_id, BLUE)
    assert await world.questions.inbox(await world.person("ann")) == []
    [waiting] = await world.questions.inbox(world.gate.owner, status=QuestionStatus.PENDING)
    assert (waiting.session_id, waiting.question) == (run.session_id, one)


async def test_an_executor_neither_answers_nor_asks_in_another_runs_name(world: SessionWorld) -> None:
    run = await running(world)
    one = await question(world, run)
    forged = {"question_id": one.question_id, "outcome": "answered", "answer": {"values": ["Blue"]}, "by": "user:ann"}
    ts = "2026-01-01T00:00:02Z"
    appended = await world.log.append(
        run.id,
        1,
        [
            {"n": 2, "type": "human_loop.resolved", "ts": ts, "data": forged},
            asked(run, n=3, question_id=f"{RunId(run.session_id)}:1:q2"),
            asked(run, n=4, question_id=f"{run.id}:1:../q3"),
        ],
    )
    assert appended.refused == 3
    assert await questions(world, run) == [one]


async def test_questions_of_a_run_that_ends_are_canceled_and_take_no_answer(world: SessionWorld) -> None:
    run = await running(world)
    one = await question(world, run)
    await world.runs.move(run.id, 1, RunState.RUNNING, RunState.CANCELED)
    assert [one.status for one in await questions(world, run)] == [QuestionStatus.CANCELED]
    with pytest.raises(Conflict):
        await reply(world, one)
