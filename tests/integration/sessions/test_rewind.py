"""A conversation goes back to one of its messages, or goes on from there in another session."""

import json
from datetime import datetime
from uuid import UUID

import pytest
from tests.support.agent_world import AgentWorld
from tests.support.scripted_model import script

from contextbase.agent_vocabulary import ExecutionProfile, PermissionDecision, QuestionKind
from contextbase.conversation.model import CONVERSATION_REBUILT, SESSION_REWOUND, AgentMessage, SessionEvent
from contextbase.conversation.projection import replay
from contextbase.conversation.questions import QuestionRows
from contextbase.conversation.todos import TodoRows
from contextbase.errors import Conflict, NotFound
from contextbase.sessions.answers import QuestionReply
from contextbase.sessions.model import AgentRun, AgentSession, Land, RunId
from contextbase.sessions.rewind import Rewound
from contextbase.sessions.states import RunState

pytestmark = pytest.mark.timeout(1200)


def wrote(path: str, text: str) -> str:
    return script({"tool": "write", "input": {"path": path, "content": text}}, {"text": f"{path} has {text}."})


async def messages(agents: AgentWorld, session: AgentSession) -> list[AgentMessage]:
    return list(await agents.services.core.sessions.service.messages(agents.owner, session.id))


async def said(agents: AgentWorld, session: AgentSession) -> list[str]:
    return [one.text for one in await messages(agents, session) if one.role == "assistant" and one.text]


async def rewind(agents: AgentWorld, session: AgentSession, name: object, *, with_files: bool = False) -> Rewound:
    return await agents.services.rewinds.rewind(agents.owner, session.id, str(name), with_files=with_files)


async def known(agents: AgentWorld, session: AgentSession) -> str:
    """All that the agent has in its memory."""
    files = sorted((await agents.folder(session) / ".agent_data" / "scripted").glob("*.json"))
    return "".join(file.read_text() for file in files)


async def done(agents: AgentWorld, session: AgentSession, prompt: str) -> AgentRun:
    run = await agents.done(session, prompt)
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    return run


async def shown_is_replayed(agents: AgentWorld, session: AgentSession) -> None:
    """The rows are what all events of the session give."""
    events = [
        SessionEvent(
            number=event.number,
            kind=event.kind,
            run_id=UUID(str(event.payload["run_id"])),
            attempt=int(str(event.payload["attempt"])),
            ts=datetime.fromisoformat(str(event.payload["ts"])),
            data=event.payload,
        )
        for event in await agents.events(session)
    ]
    rows = replay(events)
    found = {(one.run_id, one.attempt, one.message_id): one.parts for one in await messages(agents, session)}
    assert found == {key: one.parts for key, one in rows.messages.items()}
    todos, questions = TodoRows(), QuestionRows()
    todos.apply_all(events)
    questions.apply_all(events)
    sessions = agents.services.core.sessions
    items, history, asked = [], [], []
    for run_id in dict.fromkeys(event.run_id for event in events):
        items += await sessions.todos.of_run(agents.owner, RunId(run_id))
        history += await sessions.todos.history(agents.owner, RunId(run_id))
        asked += [one.question for one in await sessions.questions.of_run(agents.owner, RunId(run_id))]
    assert {(one.run_id, one.todo_id): one for one in items} == todos.items
    assert {(one.position, one.todo_id): one for one in history} == {
        (one.position, one.todo_id): one for one in todos.history
    }
    assert {one.question_id: one for one in asked} == questions.questions


async def test_a_session_goes_back_to_the_end_of_an_answer_with_and_without_its_files(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    first = await done(agents, session, wrote("a.md", "one"))
    second = await done(agents, session, wrote("a.md", "two"))

    rewound = await rewind(agents, session, first.id)
    assert [run.id for run in rewound.hidden] == [second.id]
    assert await said(agents, session) == ["a.md has one."]
    assert (await agents.folder(session) / "a.md").read_text() == "two"
    assert "two" not in await known(agents, session)

    third = await done(agents, session, wrote("b.md", "three"))
    memory = await known(agents, session)
    assert "a.md has one." in memory
    assert "a.md has two." not in memory
    assert (await agents.services.core.sessions.runs.get(second.id)).rewound_at is not None

    await rewind(agents, session, first.id, with_files=True)
    folder = await agents.folder(session)
    assert (folder / "a.md").read_text() == "one"
    assert not (folder / "b.md").exists()
    assert [event.kind for event in await agents.events(session)].count(SESSION_REWOUND) == 2
    await shown_is_replayed(agents, session)
    with pytest.raises(NotFound):
        await rewind(agents, session, third.id)

    await agents.host.remove(session)  # the machine goes on from the snapshot of the place it went back to
    await done(agents, session, script({"text": "Back again."}))
    assert "a.md has one." in await known(agents, session)
    assert "three" not in await known(agents, session)
    assert (await agents.folder(session) / "a.md").read_text() == "one"


async def test_a_session_whose_folder_was_removed_goes_back_with_the_work_of_its_last_snapshot(
    agents: AgentWorld,
) -> None:
    session = await agents.session(land=Land.NEVER)
    first = await done(agents, session, wrote("a.md", "one"))
    await done(agents, session, wrote("a.md", "two"))
    await agents.services.agents.workspaces.abandon(session.caller(), session.workspace)
    await rewind(agents, session, first.id)
    await done(agents, session, script({"text": "Back again."}))
    assert "a.md has two." not in await known(agents, session)
    assert (await agents.folder(session) / "a.md").read_text() == "two"


async def test_a_persons_message_is_taken_back_to_be_said_differently(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await done(agents, session, wrote("a.md", "one"))
    [prompt, _] = [one for one in await messages(agents, session) if one.text]
    rewound = await rewind(agents, session, prompt.message_id, with_files=True)
    assert rewound.point.prompt == prompt.text
    assert rewound.point.is_start
    assert await messages(agents, session) == []
    assert not (await agents.folder(session) / "a.md").exists()
    run = await done(agents, session, script({"text": "A new beginning."}))
    assert run.number == 2
    assert "one" not in await known(agents, session)
    assert CONVERSATION_REBUILT not in {event.kind for event in await agents.events(session)}


async def test_a_message_in_the_middle_of_an_answer_is_gone_back_to_by_what_is_written_down(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    touch = {"tool": "bash", "input": {"command": "true"}}
    await done(agents, session, script({"text": "The number is 41."}, touch, {"text": "I forget it."}))
    middle = next(one for one in await messages(agents, session) if one.text == "The number is 41.")
    with pytest.raises(Conflict):
        await rewind(agents, session, middle.message_id, with_files=True)
    await rewind(agents, session, middle.message_id)
    assert await said(agents, session) == ["The number is 41."]
    await done(agents, session, script({"text": "Here I am."}))
    memory = await known(agents, session)
    assert "Agent: The number is 41." in memory
    assert "Agent: I forget it." not in memory
    [rebuilt] = [event for event in await agents.events(session) if event.kind == CONVERSATION_REBUILT]
    assert rebuilt.payload["reason"] == "no_state"
    await shown_is_replayed(agents, session)


async def test_plans_and_questions_after_the_message_are_taken_back_too(agents: AgentWorld) -> None:
    sessions = agents.services.core.sessions
    session = await agents.session(land=Land.NEVER, profile=ExecutionProfile.ASK)

    def plan(**statuses: str) -> dict[str, object]:
        return {"tool": "todo", "input": {"todos": [{"content": one, "status": two} for one, two in statuses.items()]}}

    async def asked_and_done(*steps: dict[str, object], answers: int) -> AgentRun:
        run = await agents.send(session, script(*steps))
        for number in range(answers):
            asked = await agents.asked(run, number=number)
            is_question = asked.kind is QuestionKind.QUESTION
            allowed = QuestionReply(decision=PermissionDecision.ALLOW_SESSION)
            await agents.answer(asked, QuestionReply(values=("Blue",)) if is_question else allowed)
        ended = await agents.ended(run)
        assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
        return ended

    async def planned() -> list[tuple[str, str]]:
        found = await sessions.todos.of_session(agents.owner, session.id)
        return [(one.content, one.status) for one in found]

    ask = {"tool": "ask", "input": {"question": "Which colour?", "options": ["Blue", "Red"]}}
    touch = {"tool": "bash", "input": {"command": "true"}}
    first = await asked_and_done(
        *(plan(Plan="doing", Write="todo"), {"text": "Half."}, ask, plan(Plan="done", Ship="todo"), {"text": "Whole."}),
        answers=1,
    )
    second = await asked_and_done(plan(Other="todo"), ask, touch, {"text": "Done."}, answers=2)
    assert await planned() == [("Other", "todo")]
    await shown_is_replayed(agents, session)

    await rewind(agents, session, first.id)
    assert await planned() == [("Plan", "done"), ("Ship", "todo")]
    assert await sessions.questions.of_run(agents.owner, second.id) == []
    assert [one.question.run_id for one in await sessions.questions.inbox(agents.owner)] == [first.id]
    await shown_is_replayed(agents, session)

    half = next(one for one in await messages(agents, session) if one.text == "Half.")
    await rewind(agents, session, half.message_id)
    assert await planned() == [("Plan", "doing"), ("Write", "todo")]
    assert await sessions.questions.inbox(agents.owner) == []
    await shown_is_replayed(agents, session)
    await asked_and_done(touch, answers=1)  # the permission for the session came after the message


async def test_nobody_goes_back_while_a_run_works_and_nobody_else_at_all(agents: AgentWorld) -> None:
    session = await agents.session()
    first = await done(agents, session, script({"text": "Hello."}))
    run = await agents.send(session, script({"pause": 600}))
    with pytest.raises(Conflict):
        await rewind(agents, session, first.id)
    forked = await agents.services.core.sessions.forks.fork(agents.owner, session.id)  # as of the last end
    assert await said(agents, forked) == ["Hello."]
    await agents.services.core.sessions.service.cancel(agents.owner, run.id)
    await agents.ended(run)
    for name in ("nothing", str(forked.id), f"{forked.id}:prompt"):
        with pytest.raises(NotFound):
            await rewind(agents, session, name)
    with pytest.raises(NotFound):
        await agents.services.rewinds.rewind(session.caller(), session.id, str(first.id), with_files=False)
    with pytest.raises(NotFound):
        await agents.services.core.sessions.forks.fork(session.caller(), session.id)


async def test_a_fork_goes_on_from_a_message_and_leaves_its_session_alone(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    first = await done(agents, session, wrote("a.md", "one"))
    await done(agents, session, wrote("a.md", "two"))
    before = [(one.text, one.role) for one in await messages(agents, session)]
    forked = await agents.services.core.sessions.forks.fork(agents.owner, session.id, str(first.id))
    assert forked.forked_from == session.id
    assert await said(agents, forked) == ["a.md has one."]
    await shown_is_replayed(agents, forked)
    run = await done(agents, forked, wrote("b.md", "fork"))
    assert run.number == 2
    memory = await known(agents, forked)
    assert "a.md has one." in memory
    assert "a.md has two." not in memory
    assert (await agents.folder(forked) / "a.md").read_text() == "one"
    assert (await agents.folder(session) / "a.md").read_text() == "two"
    assert [(one.text, one.role) for one in await messages(agents, session)] == before
    copied = (await messages(agents, forked))[0]
    await rewind(agents, forked, copied.message_id)  # also behind what it has from the other session
    assert await messages(agents, forked) == []


def planned(**statuses: str) -> dict[str, object]:
    return {"tool": "todo", "input": {"todos": [{"content": one, "status": two} for one, two in statuses.items()]}}


async def test_a_fork_has_the_todo_list_as_it_was_at_its_message(agents: AgentWorld) -> None:
    session, todos = await agents.session(), agents.services.core.sessions.todos

    async def listed(of: AgentSession) -> list[tuple[str, str]]:
        return [(one.content, one.status) for one in await todos.of_session(agents.owner, of.id)]

    first = await done(agents, session, script(planned(Plan="done", Check="todo", Write="todo"), {"text": "Planned."}))
    middle = script(
        planned(Check="doing"),
        {"text": "The check is under way."},
        planned(Check="done", Write="doing"),
        {"text": "It is done."},
    )
    await done(agents, session, middle)
    now = [("Check", "done"), ("Write", "doing")]
    assert await listed(session) == now
    forks = agents.services.core.sessions.forks
    spoken = [one for one in await messages(agents, session) if one.role == "assistant"]
    under_way = next(one for one in spoken if "under way" in one.text)
    for name, expected in (
        (str(first.id), [("Plan", "done"), ("Check", "todo"), ("Write", "todo")]),
        (under_way.message_id, [("Check", "doing")]),
        (None, now),
    ):
        forked = await forks.fork(agents.owner, session.id, name)
        assert await listed(forked) == expected, name
        await shown_is_replayed(agents, forked)
    assert await listed(session) == now


async def test_an_agent_whose_memory_is_gone_is_told_what_was_said(agents: AgentWorld) -> None:
    session = await agents.session()
    await done(agents, session, script({"text": "The number is 41."}))
    for file in (await agents.folder(session) / ".agent_data" / "scripted").glob("*.json"):
        file.unlink()
    await done(agents, session, script({"text": "Here I am."}))
    assert "Agent: The number is 41." in await known(agents, session)
    [rebuilt] = [event for event in await agents.events(session) if event.kind == CONVERSATION_REBUILT]
    assert rebuilt.payload["reason"] == "resume_failed"
    assert [one["role"] for one in json.loads(await known(agents, session))] == ["user", "assistant"]
