"""Conversations with agent programs on a machine, from the message to what lands in the project."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import pytest_asyncio
from tests.support.agent_clis import installed
from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import PROGRAMS, Program
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.docker_engine import DockerEngine
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.conversation.model import CONVERSATION_REBUILT
from contextbase.db.database import DatabaseAddress
from contextbase.interfaces.api.app import create_app
from contextbase.sessions.answers import QuestionReply
from contextbase.sessions.model import AgentRun, AgentSession, Land, RunWishes
from contextbase.sessions.states import RunState

pytestmark = [pytest.mark.timeout(1200), pytest.mark.asyncio(loop_scope="module")]

QUESTION_SECONDS = 1
"""Then a question is parked: nobody has to answer sooner here."""


@asynccontextmanager
async def machine(server: DatabaseAddress, folder: Path, **options: object) -> AsyncIterator[AgentWorld]:
    """With all programs."""
    folders = {str(installed(name).parent) for name in PROGRAMS}
    options |= {"agent_folders": sorted(folders), "agent_question_wait_seconds": QUESTION_SECONDS}
    async with (
        database_copy(server, "contextbase_template") as address,
        open_agent_world(address, folder, **options) as world,
    ):
        create_app(world.services)  # it has the tools that agents are given
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def bubblewrap_machine(
    embedded_database_server: DatabaseAddress, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AgentWorld]:
    async with machine(embedded_database_server, tmp_path_factory.mktemp("data")) as world:
        yield world


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def docker_machine(
    embedded_database_server: DatabaseAddress, docker_engine: DockerEngine, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[AgentWorld]:
    docker = {"sandbox_image": docker_engine.image, "sandbox_docker_address": docker_engine.address}
    folder = tmp_path_factory.mktemp("data")
    async with machine(embedded_database_server, folder, sandbox_driver="docker", **docker) as world:
        yield world


@pytest.fixture
def agents(request: pytest.FixtureRequest) -> AgentWorld:
    """The machine with the sandboxes that the test names."""
    world = request.getfixturevalue(f"{request.param}_machine")
    assert isinstance(world, AgentWorld)
    return world


async def done(agents: AgentWorld, run: AgentRun) -> AgentRun:
    ended = await agents.ended(run)
    assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
    return ended


async def rebuilt(agents: AgentWorld, session: AgentSession) -> list[object]:
    """Why the program was told what was said before."""
    return [event.payload["reason"] for event in await agents.events(session) if event.kind == CONVERSATION_REBUILT]


@in_sandboxes("agents")
async def test_its_edits_land_and_its_question_is_answered_after_the_sandbox_is_gone(
    agents: AgentWorld, program: Program
) -> None:
    session = await agents.session(provider=program.provider)
    path = f"{program.name}.md"
    write = {"tool": "write", "input": {"path": path, "content": "# Plan\n"}}
    look = {"tool": "mcp.contextbase.read_file", "input": {"path": path}}  # one of this server's own tools
    run = await done(agents, await agents.send(session, script(write, look, {"text": "The plan is written."})))
    assert await agents.read(path) == b"# Plan\n"
    assert run.landed is not None
    assert run.landed["paths"] == [{"path": path, "status": "written"}]
    tools = await agents.services.core.sessions.service.tools(agents.owner, run.id)
    assert [(tool.name, tool.status) for tool in tools] == [("write", "ok"), ("mcp.contextbase.read_file", "ok")]
    assert "# Plan" in str(tools[1].output)
    conversation = (await agents.again(session)).sdk_session_ids[program.provider]

    ask = {"tool": "ask", "input": {"question": "Which colour?", "options": ["Blue", "Red"]}}
    more = {"tool": "bash", "input": {"command": f"echo blue >> {path}"}}
    run = await agents.send(session, script(ask, more, {"text": "Blue it is."}))
    asked = await agents.asked(run)
    await agents.parked(run)
    await agents.host.remove(session)
    await agents.answer(asked, QuestionReply(values=("Blue",)))
    assert (await done(agents, run)).attempt == 2
    assert await agents.read(path) == b"# Plan\nblue\n"
    assert (await agents.again(session)).sdk_session_ids[program.provider] == conversation
    assert await rebuilt(agents, session) == []  # it went on with what it knew
    messages = await agents.services.core.sessions.service.messages(agents.owner, session.id)
    assert messages[-1].text == "Blue it is."


async def memory(agents: AgentWorld, session: AgentSession, program: str) -> bytes:
    """What an agent program keeps of the conversation, in whatever files."""
    place = await agents.folder(session) / ".agent_data" / program
    return b"".join(file.read_bytes() for file in sorted(place.rglob("*")) if file.is_file())


@in_sandboxes("agents")
async def test_two_programs_take_turns_and_the_conversation_goes_back_and_forks(
    agents: AgentWorld, program: Program
) -> None:
    sessions = agents.services.core.sessions
    programs = list(PROGRAMS.values())
    other = programs[(programs.index(program) + 1) % len(programs)]

    async def by(session: AgentSession, provider: str, text: str) -> AgentRun:
        wishes = RunWishes(provider=provider)
        return await done(
            agents, await sessions.service.send(agents.owner, session.id, script({"text": text}), wishes=wishes)
        )

    session = await agents.session(provider=program.provider, land=Land.NEVER)
    first = await by(session, program.provider, "The number is 41.")
    await by(session, other.provider, "Mine is 42.")
    await by(session, program.provider, "I see 42.")
    assert await rebuilt(agents, session) == ["provider_changed", "provider_changed"]
    assert b"Agent: The number is 41." in await memory(agents, session, other.name)
    own = await memory(agents, session, program.name)
    assert b"Agent: Mine is 42." in own
    assert b"Agent: The number is 41." not in own  # it knew that by itself

    forked = await sessions.forks.fork(agents.owner, session.id, str(first.id))
    await by(forked, program.provider, "I am the fork.")
    await agents.services.rewinds.rewind(agents.owner, session.id, str(first.id), with_files=False)
    await by(session, program.provider, "Back at 41.")
    for one in (forked, session):
        own = await memory(agents, one, program.name)
        assert b"The number is 41." in own
        assert b"Mine is 42." not in own
        assert b"I see 42." not in own
    assert b"I am the fork." not in own
    assert await rebuilt(agents, forked) == []
    assert not list((await agents.folder(session) / ".agent_data" / other.name).rglob("*.jsonl"))


@in_sandboxes("agents")
async def test_a_program_that_waits_for_the_next_message_does_not_outlive_its_conversation(
    agents: AgentWorld, program: Program
) -> None:
    session = await agents.session(provider=program.provider)

    async def kept_process() -> object:
        live = agents.host.live(session.id)
        assert live is not None
        return (await live.link.call("GET", "/status")).json()["kept_process"]

    first = await done(agents, await agents.send(session, script({"text": "The number is 41."})))
    process = await kept_process()
    assert process is not None
    write = {"tool": "write", "input": {"path": f"kept-{program.name}.md", "content": "# Kept\n"}}
    second = await done(agents, await agents.send(session, script(write, {"text": "Mine is 42."})))
    assert await kept_process() == process
    assert second.landed is not None
    assert second.landed["paths"] == [{"path": f"kept-{program.name}.md", "status": "written"}]
    assert b"Mine is 42." in await memory(agents, session, program.name)  # while it sleeps

    await agents.services.rewinds.rewind(agents.owner, session.id, str(first.id), with_files=False)
    await done(agents, await agents.send(session, script({"text": "Back at 41."})))
    own = await memory(agents, session, program.name)
    assert b"The number is 41." in own
    assert b"Mine is 42." not in own
    assert await kept_process() is not None

    await agents.host.remove(session)  # with what the snapshot has, in a new sandbox
    await done(agents, await agents.send(session, script({"text": "Still here."})))
    own = await memory(agents, session, program.name)
    assert b"Back at 41." in own
    assert await rebuilt(agents, session) == []
