"""Questions of agents in the database: who answers them, once, and what becomes of them without an answer."""

from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest
from tests.support.session_world import SessionWorld

from contextbase.agent_vocabulary import QuestionStatus
from contextbase.conversation.model import SessionEvent
from contextbase.conversation.questions import HumanQuestion, QuestionRows
from contextbase.conversation.todos import TodoRows
from contextbase.errors import Conflict, Forbidden, NotFound
from contextbase.identity.model import GrantSource
from contextbase.sessions.answers import QuestionReply
from contextbase.sessions.model import AgentRun, RunId
from contextbase.sessions.states import RunState

TS = "2026-01-01T00:00:02Z"
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


async def test_a_question_that_nobody_answers_in_time_fails_the_run_and_a_late_answer_starts_another(
    world: SessionWorld,
) -> None:
    run = await running(world)
    one = await question(world, run)
    await world.runs.move(run.id, 1, RunState.RUNNING, RunState.WAITING_HUMAN)
    await world.queue.wait_for_answer(run.id, 1)
    world.clock.pass_by(minutes=59)
    await world.questions.expire()
    assert (await world.reload(run.id)).state is RunState.WAITING_HUMAN
    world.clock.pass_by(minutes=2)
    await world.questions.expire()
    failed = await world.reload(run.id)
    assert (failed.state, failed.reason) == (RunState.FAILED, "question_expired")
    late = await reply(world, one)
    assert late.status is QuestionStatus.EXPIRED
    assert await reply(world, one) == late
    with pytest.raises(Conflict):
        await reply(world, one, QuestionReply(values=("Red",)))
    assert late.response is not None
    assert late.response.late_run_id is not None
    started = await world.reload(RunId(late.response.late_run_id))
    assert (started.session_id, started.number) == (run.session_id, 2)
    assert "Which colour?" in started.prompt
    assert "Blue" in started.prompt


async def test_a_question_that_expires_while_a_process_waits_is_for_its_machine_to_end(world: SessionWorld) -> None:
    run = await running(world)
    await question(world, run)
    world.clock.pass_by(minutes=61)
    await world.questions.expire()
    assert (await world.reload(run.id)).state is RunState.RUNNING
    assert [one.status for one in await questions(world, run)] == [QuestionStatus.EXPIRED]


async def test_a_run_whose_machine_is_lost_while_a_person_thinks_goes_on_waiting(world: SessionWorld) -> None:
    run = await running(world)
    first, second = await question(world, run), await question(world, run, "q2", n=2)
    await world.runs.move(run.id, 1, RunState.RUNNING, RunState.WAITING_HUMAN)
    assert await world.expire_leases() == 1
    assert (await world.reload(run.id)).state is RunState.WAITING_HUMAN
    assert await world.queue.claim("m1") == []
    await reply(world, first)
    assert (await world.reload(run.id)).state is RunState.WAITING_HUMAN  # the other one is open
    await reply(world, second)
    again = await world.claim()
    assert (again.run.id, again.run.attempt) == (run.id, 2)


async def test_an_answer_that_comes_while_the_turn_ends_is_not_waited_for(world: SessionWorld) -> None:
    run = await running(world)
    one = await question(world, run)
    await world.runs.move(run.id, 1, RunState.RUNNING, RunState.WAITING_HUMAN)
    await reply(world, one)
    assert (await world.queue.wait_for_answer(run.id, 1)).state is RunState.QUEUED
    assert (await world.claim()).run.attempt == 2


async def test_the_rows_are_what_the_events_tell(world: SessionWorld) -> None:
    run = await running(world)
    one = await question(world, run)
    await question(world, run, "q2", n=2)
    await reply(world, one)
    todos = [{"todo_id": "a", "content": "one", "status": "doing", "order": 1}]
    await world.log.append(run.id, 1, [{"n": 3, "type": "todo.snapshot", "ts": TS, "data": {"todos": todos}}])
    update = {"todo_id": "a", "status": "done"}
    await world.log.append(run.id, 1, [{"n": 4, "type": "todo.update", "ts": TS, "data": update}] * 2)
    await world.runs.move(run.id, 1, RunState.RUNNING, RunState.FAILED)
    session = (await world.sessions.get(world.gate.owner, run.session_id)).session
    events = [
        SessionEvent(
            number=event.number,
            kind=event.kind,
            run_id=run.id,
            attempt=1,
            ts=datetime.fromisoformat(str(event.payload["ts"])),
            data=event.payload,
        )
        for event in await world.events(session)
    ]
    rows, lists = QuestionRows(), TodoRows()
    rows.apply_all(events)
    lists.apply_all(events)
    assert await questions(world, run) == list(rows.questions.values())
    assert await world.todos.of_run(world.gate.owner, run.id) == list(lists.items.values())
    assert await world.todos.history(world.gate.owner, run.id) == lists.history
    assert [one.status for one in lists.items.values()] == ["done"]


async def test_a_list_that_is_none_is_refused(world: SessionWorld) -> None:
    run = await running(world)
    wrong = ([{"todo_id": "a", "content": "one", "status": "maybe"}], [{"content": "one", "status": "todo"}], ["a"])
    sent = [
        {"n": n, "type": "todo.snapshot", "ts": TS, "data": {"todos": todos}} for n, todos in enumerate(wrong, start=1)
    ]
    assert (await world.log.append(run.id, 1, sent)).refused == len(wrong)
    assert await world.todos.of_run(world.gate.owner, run.id) == []
