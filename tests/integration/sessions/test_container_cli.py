"""Claude Code in a container that nothing of the machine is bound into: the program comes from the image."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.agent_clis import installed
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.container_world import APP, FILES, container, put, text_of, the_app, worker
from tests.support.docker_engine import DockerEngine
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.db.database import DatabaseAddress
from contextbase.sessions.app_sessions import AppSessionRequest
from contextbase.sessions.model import AgentRun, AgentSession
from contextbase.sessions.states import RunState
from contextbase.wire.agent_config import AgentConfig

pytestmark = pytest.mark.timeout(1200)

CLAUDE = "claude_agent_sdk/_bundled/claude"


@pytest.fixture
async def agents(
    embedded_database_server: DatabaseAddress, docker_engine: DockerEngine, tmp_path: Path
) -> AsyncIterator[AgentWorld]:
    """The machine itself has no agent programs to show."""
    program = {f"/opt/agents/claude/{CLAUDE}": installed("claude") / CLAUDE}
    options = {
        "sandbox_driver": "docker",
        "sandbox_image": docker_engine.image_with(program, "contextbase-test-claude"),
        "sandbox_docker_address": docker_engine.address,
    }
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", **options) as world,
    ):
        yield world


async def a_session(agents: AgentWorld) -> AgentSession:
    config = AgentConfig.model_validate(
        {"provider": "claude", "model": "claude-sonnet-4-5", "workspace_kind": "container"}
    )
    return await agents.services.core.sessions.apps.create(agents.owner, AppSessionRequest(app=APP, overrides=config))


async def ran(agents: AgentWorld, session: AgentSession, *steps: dict[str, object]) -> AgentRun:
    run = await agents.done(session, script(*steps, {"text": "Done."}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    return run


async def test_claude_code_of_the_image_works_lands_and_goes_on_when_its_container_was_removed(
    agents: AgentWorld, docker_engine: DockerEngine
) -> None:
    app = await the_app(agents)
    session = await a_session(agents)
    home = f"project/default/owner/session/{session.id}/workspace"
    edit = {"file_path": "/workspace/docs/guide.md", "old_string": "two", "new_string": "TWO"}
    run = await ran(
        agents,
        session,
        {"tool": "Read", "input": {"file_path": "/workspace/docs/guide.md"}},
        {"tool": "Edit", "input": edit},
        {"tool": "write", "input": {"path": "plan.md", "content": "# Plan\n"}},
        {"tool": "bash", "input": {"command": "echo more >> .user-files/mine.md"}},
    )
    assert run.landed is not None
    assert await text_of(agents, app, f"{home}/docs/guide.md") == "one\nTWO\nthree\n"
    assert await text_of(agents, app, f"{home}/plan.md") == "# Plan\n"
    assert await text_of(agents, app, f"{FILES}/mine.md") == "mine\nmore\n"
    known = (await agents.again(session)).sdk_session_ids
    found = container(docker_engine, await worker(agents, session))
    assert found is not None
    assert (found["Mounts"], found["HostConfig"].get("Binds")) == ([], None)
    docker_engine.remove_containers(str(found["Name"]).removeprefix("/"))
    await put(agents, app, {f"{home}/docs/guide.md": "one\nTWO\nTHREE\n"})
    run = await ran(agents, session, {"tool": "bash", "input": {"command": "cat docs/guide.md plan.md"}})
    [tool] = await agents.services.core.sessions.service.tools(agents.owner, run.id)
    assert "one\nTWO\nTHREE\n# Plan" in str(tool.output)
    # The same conversation, by what the program itself kept of it.
    assert (await agents.again(session)).sdk_session_ids == known
    assert known.keys() == {"claude-code"}
