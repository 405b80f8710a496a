"""The executor in a real sandbox, through the server's link."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.executor_site import attached, model_handler, run_body
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Implementation, Site
from tests.support.scripted_model import scripted_model

DETACHABLE = [name for name, each in IMPLEMENTATIONS.items() if each.keeps_leftovers]


@pytest.fixture(params=DETACHABLE)
def implementation(request: pytest.FixtureRequest) -> Implementation:
    return IMPLEMENTATIONS[request.param]


@pytest.fixture
async def site(request: pytest.FixtureRequest, implementation: Implementation, tmp_path: Path) -> AsyncIterator[Site]:
    given = None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)
    async with implementation.site(tmp_path, given) as site:
        yield site


async def test_an_agent_without_any_program_uses_tools_and_says_what_it_did(site: Site) -> None:
    steps = [("bash", {"command": "echo hello > made; cat made"}), "All is done."]
    with scripted_model(steps, lambda tool: tool) as model:
        async with attached(site, {"model": model_handler(model.url)}) as there:
            body = run_body()
            events = await there.run(body)
            again = await there.link.call("POST", "/run", body)
            assert again.status == 200
    kinds = [event["type"] for event in events]
    assert kinds[0] == "run.status"
    assert kinds[-1] == "run.finished"
    assert events[-1]["data"]["outcome"] == "completed"
    [end] = [event["data"] for event in events if event["type"] == "tool.end"]
    assert (end["status"], end["output"]) == ("ok", "hello\n")
    assert [event["data"]["text"] for event in events if event["type"] == "message.done"] == ["", "All is done."][1:]
    assert model.answers == ["hello\n"]
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
