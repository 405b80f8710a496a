"""What a project's setup script installs is there for its agents, and the script runs once on a machine."""

import pytest
from tests.support.agent_world import AgentWorld
from tests.support.scripted_model import script

from contextbase.errors import InvalidInput
from contextbase.sessions.environments import ProjectEnvironment
from contextbase.sessions.states import RunState

pytestmark = pytest.mark.timeout(1200)

_SETUP = """
mkdir -p ~/.local/bin
printf '#!/bin/sh\necho installed with %s\n' "$(cat words.md)" > ~/.local/bin/tool
chmod +x ~/.local/bin/tool
date +%s%N > ~/made-at
"""
_USE = {"tool": "bash", "input": {"command": "tool > used.md; cat ~/made-at > made-at.md; ls -A ~ > home.md"}}


async def wanted(agents: AgentWorld, **environment: str) -> None:
    environments = agents.services.core.sessions.environments
    await environments.replace(agents.owner, agents.project_id, ProjectEnvironment(**environment))


async def made_at(agents: AgentWorld) -> bytes | None:
    """When the script ran whose work a new session sees."""
    run = await agents.done(await agents.session(), script(_USE, {"text": "Used."}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert await agents.read("used.md") == b"installed with care\n"
    return await agents.read("made-at.md")


async def test_a_setup_script_runs_once_and_again_when_it_is_changed(agents: AgentWorld) -> None:
    await agents.put({"words.md": b"care"})
    await wanted(agents, setup=_SETUP)
    first = await made_at(agents)
    assert first
    assert await made_at(agents) == first, "another session has what the first one installed"
    await wanted(agents, setup=f"{_SETUP}\n# changed")
    assert await made_at(agents) != first


async def test_a_setup_script_that_fails_fails_the_run_with_what_it_said(agents: AgentWorld) -> None:
    await wanted(agents, setup="echo no such package; exit 3")
    session = await agents.session()
    run = await agents.done(session, script({"text": "Hello."}))
    assert (run.state, run.reason, run.attempt) == (RunState.FAILED, "setup_failed", 1)
    assert "no such package" in (run.message or "")
    await wanted(agents)
    run = await agents.done(session, script({"text": "Hello."}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)


async def test_a_machine_without_images_says_so(agents: AgentWorld) -> None:
    await wanted(agents, image="python:3.12")
    run = await agents.done(await agents.session(), script({"text": "Hello."}))
    assert (run.state, run.reason) == (RunState.FAILED, InvalidInput.code)
    with pytest.raises(InvalidInput):
        ProjectEnvironment(image="-v /:/host")
