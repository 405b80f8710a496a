"""The executor in a real sandbox, through the server's link."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.executor_site import attached, gateway_handler, run_body
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Implementation, Site
from tests.support.scripted_model import RecordedModel, script

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
    model = RecordedModel()
    task = script(
        {"tool": "bash", "input": {"command": "echo hello > made; cat made"}},
        {"tool": "write", "input": {"path": "notes/new.md", "content": "one\n"}},
        {"tool": "edit", "input": {"path": "notes/new.md", "old": "one", "new": "two"}},
        {"tool": "read", "input": {"path": "notes/new.md"}},
        {"text": "All is done."},
    )
    async with attached(site, {"model": gateway_handler(model)}) as there:
        body = run_body(task)
        events = await there.run(body)
        again = await there.link.call("POST", "/run", body)
        assert again.status == 200
    kinds = [event["type"] for event in events]
    assert kinds[0] == "run.status"
    assert kinds[-1] == "run.finished"
    assert events[-1]["data"]["outcome"] == "completed"
    starts = [event["data"]["name"] for event in events if event["type"] == "tool.start"]
    assert starts == ["bash", "write", "edit", "read"]
    ends = [event["data"] for event in events if event["type"] == "tool.end"]
    assert [end["status"] for end in ends] == ["ok"] * 4
    assert (ends[0]["output"], ends[-1]["output"]) == ("hello\n", "two\n")
    assert [event["data"]["text"] for event in events if event["type"] == "message.done"] == ["All is done."]
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
