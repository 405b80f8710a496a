"""What an app's configuration gives to a real agent program, and what it keeps on the server."""

from collections.abc import AsyncIterator
from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from tests.support.agent_clis import installed
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.gate_world import write
from tests.support.mcp_servers import PROGRAM, remote_server
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.agent_vocabulary import QuestionStatus
from contextbase.catalog.model import App, AppLayer, NewApp
from contextbase.db.database import DatabaseAddress
from contextbase.gate.model import CommitRequest
from contextbase.models.addresses import AddressChecker
from contextbase.sessions.app_sessions import AppSessionRequest
from contextbase.sessions.model import AgentRun, AgentSession
from contextbase.sessions.states import RunState
from contextbase.wire.agent_config import AgentConfig, ConfigLayer
from contextbase.wire.manifest import RuntimeManifest

PASSWORD = f"hunter-{uuid4().hex}"
FORECAST = script({"tool": "mcp.weather.forecast", "input": {}}, {"text": "Done."})


@pytest.fixture
async def agents(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[AgentWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", agent_folders=[str(installed("claude").parent)]) as world,
    ):
        world.services.models.remote_mcp.checker = AddressChecker(allow_loopback=True)
        yield world


async def an_app(agents: AgentWorld) -> App:
    core, name = agents.services.core, f"a-{uuid4().hex[:8]}"
    app = await core.apps.apps.register(agents.owner, NewApp(name=name, title=name))
    changes = (write("registry/1/words.py", PROGRAM.encode(), 0),)
    await core.gate.commit(agents.owner, CommitRequest(project_id=app.project_id, changes=changes))
    manifest = {"appId": name, "runtimeVersion": "1", "workspaceTemplatePrefix": f"app/{name}/registry/1/"}
    await core.apps.manifests.publish(agents.owner, name, RuntimeManifest.model_validate(manifest))
    await core.apps.configuration.put_secret(
        agents.owner, AppLayer(name, ConfigLayer.APP), "password", f"Bearer {PASSWORD}"
    )
    return app


async def ran(agents: AgentWorld, app: App, prompt: str, **overrides: object) -> tuple[AgentSession, AgentRun]:
    config = AgentConfig.model_validate({"provider": "claude", "model": "claude-sonnet-4-5", **overrides})
    request = AppSessionRequest(app=app.name, overrides=config)
    session = await agents.services.core.sessions.apps.create(agents.owner, request)
    return session, await agents.done(session, prompt)


async def outputs(agents: AgentWorld, run: AgentRun) -> list[str]:
    details = await agents.services.core.sessions.service.tools(agents.owner, run.id)
    return [str(tool.output) for tool in details]


def weather(url: str) -> dict[str, object]:
    return {"weather": {"type": "http", "url": url, "headers": {"Authorization": {"secret": "password"}}}}


async def test_claude_code_uses_a_server_of_the_sandbox_and_one_elsewhere_without_its_password(
    agents: AgentWorld,
) -> None:
    app, seen = await an_app(agents), list[dict[str, str]]()
    words = {"type": "stdio", "command": ["python3", "words.py"], "environment": {"WORD": "plum"}}
    async with remote_server(PASSWORD, seen) as url:
        config = AgentConfig.model_validate({"mcp_servers": {"words": words, **weather(url)}})
        await agents.services.core.apps.configuration.put(agents.owner, AppLayer(app.name, ConfigLayer.APP), config)
        looked_for = PASSWORD.replace("-", "[-]")  # which is not found in what looks for it
        look = f"grep -rls {looked_for} ~ /workspace /proc/*/environ /proc/*/cmdline | wc -l"
        session, run = await ran(
            agents,
            app,
            script(
                {"tool": "mcp.words.secret_word", "input": {}},
                {"tool": "mcp.weather.forecast", "input": {}},
                {"tool": "bash", "input": {"command": look}},
                {"text": "Done."},
            ),
        )
    assert run.state is RunState.SUCCEEDED, run.message
    word, rain, found = await outputs(agents, run)
    assert "the word is plum" in word
    assert "it will rain" in rain
    assert found.strip() == "0"
    assert all(headers["authorization"] == f"Bearer {PASSWORD}" for headers in seen)
    told = [event.payload for event in await agents.events(session) if event.kind == "egress"]
    assert len(told) == 1, told
    assert "connected" in str(told)


async def test_a_person_gives_no_secret_of_the_app_to_a_server_of_their_own(agents: AgentWorld) -> None:
    app, seen = await an_app(agents), list[dict[str, str]]()
    async with remote_server(PASSWORD, seen) as url:
        _, run = await ran(agents, app, FORECAST, mcp_servers=weather(url))
        assert (run.state, run.reason) == (RunState.FAILED, "conflict")
        # With one of their own, the host must be among those that sandboxes may reach.
        configuration = agents.services.core.apps.configuration
        await configuration.put_secret(
            agents.owner, AppLayer(app.name, ConfigLayer.USER), "password", f"Bearer {PASSWORD}"
        )
        await ran(agents, app, FORECAST, mcp_servers=weather(url))
        assert not seen
        egress = agents.services.models.egress
        await egress.replace(agents.owner, app.project_id, [url.removeprefix("http://")])
        _, run = await ran(agents, app, FORECAST, mcp_servers=weather(url))
        assert run.state is RunState.SUCCEEDED, run.message
        assert "it will rain" in (await outputs(agents, run))[0]


async def test_a_question_that_nobody_answers_in_the_apps_time_gets_the_default_answer(agents: AgentWorld) -> None:
    app = await an_app(agents)
    timeouts = {"question_minutes": 5, "on_question_timeout": "default"}
    config = AgentConfig.model_validate({"provider": "scripted", "timeouts": timeouts})
    request = AppSessionRequest(app=app.name, overrides=config)
    session = await agents.services.core.sessions.apps.create(agents.owner, request)
    ask = {"tool": "ask", "input": {"question": "Which colour?", "options": ["Blue", "Red"]}}
    run = await agents.send(session, script(ask, {"text": "I go on."}))
    asked = await agents.asked(run)
    assert asked.deadline - asked.created_at < timedelta(minutes=10)  # an hour, for those without a configuration
    async with agents.services.core.database.connection() as connection:
        await connection.execute("UPDATE human_loop_requests SET deadline = clock_timestamp() - interval '1 second'")
    while asked.status is QuestionStatus.PENDING:
        await agents.services.core.sessions.questions.expire()
        asked = await agents.asked(run)
    ended = await agents.ended(run)
    assert ended.state is RunState.SUCCEEDED, ended.message
    assert asked.response is not None
    assert (asked.response.responder, asked.response.answer) == ("system:default", {"values": ["Blue"]})
    assert "Blue" in (await outputs(agents, ended))[0]


async def test_the_budget_of_the_layers_holds_at_the_gateway(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    seen: list[dict[str, str]] = []
    async with (
        remote_server(PASSWORD, seen) as url,
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", model_anthropic_url=url, model_anthropic_key="sk-none") as world,
    ):
        app, values = await an_app(world), {"provider": "scripted", "budgets": {"run": 0}}
        _, run = await ran(world, app, "Hello.", **values)
    assert run.state is RunState.FAILED
    assert "budget" in str(run.message)
    assert not seen  # nothing was asked that nobody pays for
