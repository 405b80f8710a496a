"""What agents ask people, from the question to the answer, on a real machine and in the database."""

from pathlib import Path

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.agent_vocabulary import ExecutionProfile, PermissionDecision, QuestionStatus
from contextbase.db.database import DatabaseAddress
from contextbase.errors import Conflict
from contextbase.sessions.answers import QuestionReply
from contextbase.sessions.model import WorkerState
from contextbase.sessions.states import RunState

pytestmark = pytest.mark.timeout(1200)

ASK = {"tool": "ask", "input": {"question": "Which colour?", "options": ["Blue", "Red"]}}
DENIED = QuestionReply(decision=PermissionDecision.DENY, reason="Not now.")
ALLOWED_ONCE = QuestionReply(decision=PermissionDecision.ALLOW_ONCE)
ALLOWED = QuestionReply(decision=PermissionDecision.ALLOW_SESSION)


async def test_an_agent_asks_waits_and_goes_on_with_the_answer(agents: AgentWorld) -> None:
    session = await agents.session()
    run = await agents.send(session, script(ASK, {"tool": "bash", "input": {"command": "echo on > on.md"}}))
    asked = await agents.asked(run)
    assert (asked.kind, asked.prompt, [one.value for one in asked.options]) == (
        "question",
        "Which colour?",
        ["Blue", "Red"],
    )
    await agents.in_state(run, RunState.WAITING_HUMAN)
    await agents.answer(asked, QuestionReply(values=("Blue",)))
    ended = await agents.ended(run)
    assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 1), (ended.reason, ended.message)
    assert await agents.read("on.md") == b"on\n"
    [tool, _] = await agents.services.core.sessions.service.tools(agents.owner, run.id)
    assert tool.output == "Which colour?: Blue"
    states = [event.payload["state"] for event in await agents.events(session) if event.kind == "run.state"]
    assert states[states.index("running") :][:3] == ["running", "waiting_human", "running"]


async def test_a_question_that_waits_long_is_parked_and_its_answer_begins_the_next_turn(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    """The turn ends at once here. Then the sandbox is removed, the server is started again, and somebody answers."""
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        folder, options = tmp_path / "data", {"agent_question_wait_seconds": 0}
        note = {"tool": "bash", "input": {"command": "echo noted >> note.md"}}
        async with open_agent_world(address, folder, keeps_mounts=True, **options) as first:
            session = await first.session()
            run = await first.send(session, script(note, ASK, note, {"text": "Blue it is."}))
            asked = await first.asked(run)
            await first.parked(run)
            assert await first.read("note.md") is None  # nothing lands before the run has ended
            await first.workers.upkeep.sweep()
            found = await first.services.core.sessions.service.get(first.owner, session.id)
            assert found.worker is not None
            assert found.worker.state is WorkerState.STOPPED
            await first.host.remove(session)
        async with open_agent_world(address, folder, project_id=first.project_id, **options) as second:
            assert (await second.services.core.sessions.runs.get(run.id)).state is RunState.WAITING_HUMAN
            await second.answer(asked, QuestionReply(values=("Blue",)))
            ended = await second.ended(run)
            assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 2), (ended.reason, ended.message)
            assert await second.read("note.md") == b"noted\nnoted\n"
            [question] = await second.services.core.sessions.questions.of_run(second.owner, run.id)
            assert question.question.delivered_at is not None
            messages = await second.services.core.sessions.service.messages(second.owner, session.id)
            assert messages[-1].text == "Blue it is."


async def test_a_person_permits_once_for_the_session_or_not_and_sees_the_change_before(agents: AgentWorld) -> None:
    await agents.put({"list.md": b"one\n"})
    session = await agents.session(profile=ExecutionProfile.ASK)
    write = {"tool": "write", "input": {"path": "list.md", "content": "two\n"}}
    run_it = {"tool": "bash", "input": {"command": "echo >> ran.md"}}
    run = await agents.send(session, script(write, write, run_it, run_it, {"text": "Done."}))
    for number, reply in enumerate((DENIED, ALLOWED_ONCE, ALLOWED)):
        asked = await agents.asked(run, number=number)
        assert asked.kind == "permission"
        if asked.context["tool"] == "Write":
            assert "-one\n+two\n" in asked.context["diff"]
        await agents.answer(asked, reply)
    ended = await agents.ended(run)
    assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
    assert (await agents.read("list.md"), await agents.read("ran.md")) == (b"two\n", b"\n\n")
    tools = await agents.services.core.sessions.service.tools(agents.owner, run.id)
    assert [tool.status for tool in tools] == ["error", "ok", "ok", "ok"]
    assert "Not now." in str(tools[0].output)
    later = await agents.done(session, script(run_it))  # the rule is the session's
    assert later.state is RunState.SUCCEEDED
    assert await agents.services.core.sessions.questions.of_run(agents.owner, later.id) == []


async def test_a_permission_that_was_parked_holds_in_the_next_turn(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", agent_question_wait_seconds=0) as agents,
    ):
        session = await agents.session(profile=ExecutionProfile.ASK)
        run_it = {"tool": "bash", "input": {"command": "echo ran > ran.md"}}
        run = await agents.send(session, script(run_it, run_it, {"text": "Done."}))
        asked = await agents.asked(run)
        await agents.parked(run)
        await agents.answer(asked, ALLOWED_ONCE)
        ended = await agents.ended(run)
        assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 2), (ended.reason, ended.message)
        assert await agents.read("ran.md") == b"ran\n"
        assert len(await agents.services.core.sessions.questions.of_run(agents.owner, run.id)) == 1


async def test_a_run_is_canceled_while_it_waits_with_and_without_a_process(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        for seconds in (600, 0):
            async with open_agent_world(address, tmp_path / "data", agent_question_wait_seconds=seconds) as agents:
                session = await agents.session()
                run = await agents.send(session, script(ASK, {"text": "Never said."}))
                asked = await agents.asked(run)
                await (agents.parked(run) if seconds == 0 else agents.in_state(run, RunState.WAITING_HUMAN))
                await agents.services.core.sessions.service.cancel(agents.owner, run.id)
                assert (await agents.ended(run)).state is RunState.CANCELED
                [question] = await agents.services.core.sessions.questions.of_run(agents.owner, run.id)
                assert question.question.status is QuestionStatus.CANCELED
                with pytest.raises(Conflict):
                    await agents.answer(asked, QuestionReply(values=("Blue",)))


async def test_what_an_agent_plans_is_shown_and_changes_in_place(agents: AgentWorld) -> None:
    session = await agents.session()

    def plan(**statuses: str) -> dict[str, object]:
        return {"tool": "todo", "input": {"todos": [{"content": one, "status": two} for one, two in statuses.items()]}}

    run = await agents.done(
        session, script(plan(Plan="doing", Write="todo"), plan(Plan="done", Check="doing", Write="todo"))
    )
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    todos = agents.services.core.sessions.todos
    found = await todos.of_run(agents.owner, run.id)
    assert [(one.content, one.status) for one in found] == [("Plan", "done"), ("Check", "doing"), ("Write", "todo")]
    assert await todos.of_session(agents.owner, session.id) == found
    changes = [(one.content, one.change) for one in await todos.history(agents.owner, run.id)]
    assert changes == [
        ("Plan", "added"),
        ("Write", "added"),
        ("Plan", "changed"),
        ("Check", "added"),
        ("Write", "changed"),
    ]


async def test_a_question_is_answered_after_the_server_was_started_again_beside_the_process_that_waits(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        async with open_agent_world(address, tmp_path / "data", keeps_mounts=True) as first:
            session = await first.session()
            run = await first.send(session, script(ASK, {"text": "Blue it is."}))
            asked = await first.asked(run)
            await first.in_state(run, RunState.WAITING_HUMAN)
        async with open_agent_world(address, tmp_path / "data", project_id=first.project_id) as second:
            await second.answer(asked, QuestionReply(values=("Blue",)))
            ended = await second.ended(run)
            assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 1), (ended.reason, ended.message)


async def test_a_process_that_waits_for_an_answer_ends_when_the_question_expires(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", agent_question_minutes=0.0001) as agents,
    ):
        session = await agents.session()
        run = await agents.send(session, script(ASK, {"text": "Never said."}))
        asked = await agents.asked(run)
        while asked.status is QuestionStatus.PENDING:
            await agents.services.core.sessions.questions.expire()
            asked = await agents.asked(run)
        ended = await agents.ended(run)
        assert (ended.state, ended.reason) == (RunState.FAILED, "question_expired")
