"""A session whose sandbox is a Docker container, in the environment of its project."""

from pathlib import Path

import pytest
from tests.support.agent_world import open_agent_world
from tests.support.docker_engine import DockerEngine
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.db.database import DatabaseAddress
from contextbase.sessions.environments import ProjectEnvironment
from contextbase.sessions.states import RunState

pytestmark = pytest.mark.timeout(1200)


async def test_an_agent_works_in_a_container_of_its_projects_image_and_goes_on_in_another(
    embedded_database_server: DatabaseAddress, docker_engine: DockerEngine, tmp_path: Path
) -> None:
    options = {
        "sandbox_driver": "docker",
        "sandbox_image": docker_engine.image,
        "sandbox_docker_address": docker_engine.address,
    }
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", **options) as agents,
    ):
        with docker_engine.client() as engine:
            named = {"repo": "contextbase-test-project", "tag": "own"}
            engine.post(f"/images/{docker_engine.image}/tag", params=named).raise_for_status()
        environment = ProjectEnvironment(image="contextbase-test-project:own", setup="echo from the setup > ~/prepared")
        await agents.services.core.sessions.environments.replace(agents.owner, agents.project_id, environment)
        session = await agents.session()
        write = {"tool": "write", "input": {"path": "plan.md", "content": "# Plan\n"}}
        run = await agents.done(session, script(write, {"text": "The plan is written."}))
        assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
        assert await agents.read("plan.md") == b"# Plan\n"
        live = agents.host.live(session.id)
        assert live is not None
        assert live.driver.name == "docker"
        with docker_engine.client() as engine:
            images = {one["Image"] for one in engine.get("/containers/json").json()}
        assert "contextbase-test-project:own" in images
        session = await agents.again(session)
        conversation = session.sdk_session_ids["scripted"]
        await agents.host.remove(session)
        edit = {"tool": "bash", "input": {"command": "cat ~/prepared >> plan.md"}}
        run = await agents.done(session, script(edit, {"text": "Done."}))
        assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
        assert await agents.read("plan.md") == b"# Plan\nfrom the setup\n"
        assert (await agents.again(session)).sdk_session_ids["scripted"] == conversation
