"""Sessions of apps whose files are in a container's own layer, on a real engine, by a clock that the tests move."""

from collections.abc import AsyncIterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.container_world import APP, FILES, container, put, text_of, the_app, worker
from tests.support.docker_engine import DockerEngine
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.db.database import DatabaseAddress
from contextbase.ids import SystemClock
from contextbase.sessions.app_sessions import AppSessionRequest
from contextbase.sessions.lifecycle import SessionLifecycle
from contextbase.sessions.model import AgentRun, AgentSession, SyncStatus, WorkerState
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.states import RunState
from contextbase.wire.agent_config import AgentConfig

pytestmark = pytest.mark.timeout(1200)


class MovedClock:
    def __init__(self) -> None:
        self.ahead = timedelta()

    def now(self) -> datetime:
        return SystemClock().now() + self.ahead


@pytest.fixture
async def agents(
    embedded_database_server: DatabaseAddress, docker_engine: DockerEngine, tmp_path: Path
) -> AsyncIterator[AgentWorld]:
    options = {
        "sandbox_driver": "docker",
        "sandbox_image": docker_engine.image,
        "sandbox_docker_address": docker_engine.address,
    }
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data", **options) as world,
    ):
        yield world


async def a_session(agents: AgentWorld, **overrides: Any) -> AgentSession:
    config = AgentConfig.model_validate({"provider": "scripted", "workspace_kind": "container", **overrides})
    return await agents.services.core.sessions.apps.create(agents.owner, AppSessionRequest(app=APP, overrides=config))


async def ran(agents: AgentWorld, session: AgentSession, *commands: str) -> AgentRun:
    steps = [{"tool": "bash", "input": {"command": command}} for command in commands]
    run = await agents.done(session, script(*steps, {"text": "Done."}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    return run


async def printed(agents: AgentWorld, session: AgentSession, command: str) -> str:
    run = await ran(agents, session, command)
    [tool] = await agents.services.core.sessions.service.tools(agents.owner, run.id)
    return str(tool.output)


async def kept_up(agents: AgentWorld, clock: MovedClock) -> None:
    """What the chores do by that clock."""
    core = agents.services.core
    lifecycle = SessionLifecycle(
        database=core.database, repository=SessionRepository(), streams=core.streams, clock=clock
    )
    await lifecycle.keep_up()
    await agents.workers.upkeep.sweep()


async def test_the_products_example_works_in_a_container_that_nothing_is_bound_into(
    agents: AgentWorld, docker_engine: DockerEngine
) -> None:
    app = await the_app(agents)
    session = await a_session(agents)
    home = f"project/default/owner/session/{session.id}/workspace"
    told = await printed(
        agents,
        session,
        "cat README.md .editorconfig src/main.py .kb/app/style.md .kb/project/plan.md .user-files/mine.md; ls -A .",
    )
    for part in ("# Read me", "root = true", "print(1)", "Be brief.", "The plan.", "mine", ".agent_data"):
        assert part in told
    found = container(docker_engine, await worker(agents, session))
    assert found is not None
    assert found["Mounts"] == []
    assert not found["HostConfig"].get("Tmpfs")
    assert not found["HostConfig"].get("Binds")
    # What the agent does comes back: new, changed, removed, a link, an empty folder; knowledge and stray files do not.
    run = await ran(
        agents,
        session,
        "echo four >> docs/guide.md; rm src/main.py; mkdir -p new/empty; echo x > new/x.md; ln -s x.md new/link; "
        "chmod +x new/x.md; echo more >> .user-files/mine.md; mkdir -p .claude; echo s > .claude/stray; "
        "echo changed > .kb/app/style.md",
    )
    assert run.landed is not None
    assert await text_of(agents, app, f"{home}/docs/guide.md") == "one\ntwo\nthree\nfour\n"
    assert await text_of(agents, app, f"{home}/src/main.py") is None
    assert await text_of(agents, app, f"{home}/new/x.md") == "x\n"
    assert await text_of(agents, app, f"{FILES}/mine.md") == "mine\nmore\n"
    assert await text_of(agents, app, "kb/style.md") == "Be brief.\n"
    assert await text_of(agents, app, f"{home}/.claude/stray") is None
    # What others do goes in, beside what the container has.
    await put(agents, app, {f"{home}/docs/guide.md": "ONE\ntwo\nthree\nfour\n", "kb/new.md": "New.\n"})
    told = await printed(
        agents, session, "cat docs/guide.md .kb/app/style.md .kb/app/new.md new/link; ls new .claude; test -x new/x.md"
    )
    for part in ("ONE\ntwo", "Be brief.", "New.", "x\n", "empty", "stray"):
        assert part in told


async def test_a_container_is_stopped_when_idle_removed_a_day_later_and_the_conversation_goes_on(
    agents: AgentWorld, docker_engine: DockerEngine
) -> None:
    app, clock = await the_app(agents), MovedClock()
    session = await a_session(agents)
    home = f"project/default/owner/session/{session.id}/workspace"
    await ran(agents, session, "echo kept > kept.md; echo mine > .agent_data/own.txt")
    known = (await agents.again(session)).sdk_session_ids
    made = container(docker_engine, await worker(agents, session))
    clock.ahead = timedelta(minutes=21)
    await kept_up(agents, clock)
    stopped = await worker(agents, session)
    assert (stopped.state, stopped.last_sync_status) == (WorkerState.STOPPED, SyncStatus.SUCCESS)
    halted = container(docker_engine, stopped)
    assert made is not None
    assert halted is not None
    assert (halted["Id"], halted["State"]["Running"]) == (made["Id"], False)
    # Somebody edits a file meanwhile: it is merged at the restore.
    await put(agents, app, {f"{home}/docs/guide.md": "one\ntwo\nTHREE\n"})
    told = await printed(agents, session, "cat kept.md docs/guide.md .agent_data/own.txt")
    assert "kept\none\ntwo\nTHREE\nmine" in told
    again = container(docker_engine, await worker(agents, session))
    assert again is not None
    assert again["Id"] == made["Id"]
    await ran(agents, session, "sed -i s/one/ONE/ docs/guide.md")
    assert await text_of(agents, app, f"{home}/docs/guide.md") == "ONE\ntwo\nTHREE\n"
    clock.ahead = timedelta(hours=1)
    await kept_up(agents, clock)
    clock.ahead = timedelta(hours=27)
    await kept_up(agents, clock)
    removed = await worker(agents, session)
    assert removed.state is WorkerState.DELETED
    assert not docker_engine.containers(str(again["Name"]).removeprefix("/"))
    told = await printed(agents, session, "cat kept.md docs/guide.md .agent_data/own.txt")
    assert "kept\nONE\ntwo\nTHREE\nmine" in told
    assert (await agents.again(session)).sdk_session_ids == known


async def test_a_conversation_goes_on_when_somebody_removed_its_container(
    agents: AgentWorld, docker_engine: DockerEngine
) -> None:
    await the_app(agents)
    session = await a_session(agents)
    await ran(agents, session, "echo kept > kept.md; echo mine > .agent_data/own.txt")
    known = (await agents.again(session)).sdk_session_ids
    found = container(docker_engine, await worker(agents, session))
    assert found is not None
    docker_engine.remove_containers(str(found["Name"]).removeprefix("/"))
    told = await printed(agents, session, "cat kept.md README.md .agent_data/own.txt")
    assert "kept\n# Read me\nmine" in told
    assert (await agents.again(session)).sdk_session_ids == known


async def test_a_container_whose_files_cannot_be_stored_is_kept_and_people_are_told(
    agents: AgentWorld, docker_engine: DockerEngine
) -> None:
    await the_app(agents)
    session = await a_session(agents, landing="never")
    await ran(agents, session, "true")
    live = agents.host.live(session.id)
    assert live is not None
    blobs = agents.services.core.data.blobs
    assert not blobs.exists()  # nothing is large enough for it yet
    blobs.write_text("not a folder")
    clock = MovedClock()
    clock.ahead = timedelta(hours=1)
    try:
        run = await agents.done(
            session,
            script({"tool": "bash", "input": {"command": "head -c 600000 /dev/urandom > big"}}, {"text": "Done."}),
        )
        assert run.state is not RunState.SUCCEEDED
        for _ in range(6):
            await kept_up(agents, clock)
        kept = await worker(agents, session)
        assert kept.state is WorkerState.RUNNING
        assert kept.alert is not None
        assert container(docker_engine, kept) is not None
        assert [event.kind for event in await agents.events(session)].count("worker.alert") == 1
    finally:
        blobs.unlink()
    await kept_up(agents, clock)
    stopped = await worker(agents, session)
    assert (stopped.state, stopped.alert) == (WorkerState.STOPPED, None)
    assert "600000" in await printed(agents, session, "wc -c < big")
