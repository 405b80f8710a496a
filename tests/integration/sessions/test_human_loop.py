"""What agents ask people, from the question to the answer, on a real machine and in the database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.db.database import DatabaseAddress
from contextbase.sessions.answers import QuestionReply
from contextbase.sessions.states import RunState

pytestmark = pytest.mark.timeout(1200)

ASK = {"tool": "ask", "input": {"question": "Which colour?", "options": ["Blue", "Red"]}}


@pytest.fixture
async def agents(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[AgentWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data") as world,
    ):
        yield world


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
