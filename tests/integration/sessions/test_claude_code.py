"""The real Claude Code in a real sandbox, driven by the executor, its model behind the gateway."""

from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from tests.support.agent_clis import installed
from tests.support.executor_site import attached, gateway_handler, run_body
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Site
from tests.support.scripted_model import RecordedModel, script


@pytest.fixture(params=["bubblewrap", "docker-folder"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    implementation = IMPLEMENTATIONS[request.param]
    given = None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)
    async with implementation.site(tmp_path, given) as site:
        yield site


@pytest.fixture(scope="module")
def claude() -> Path:
    return installed("claude")


def claude_run(prompt: str, **values: Any) -> dict[str, Any]:
    return run_body(prompt, provider="claude", **values)


def shown(claude: Path) -> dict[str, Any]:
    return {"read_only": ((claude, PurePosixPath("/opt/agents/claude")),)}


def of_type(events: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [event["data"] for event in events if event["type"] == kind]


async def test_it_says_uses_tools_writes_files_and_is_resumed_elsewhere(site: Site, claude: Path) -> None:
    model = RecordedModel()
    handlers = {"model": gateway_handler(model)}
    task = script(
        {"reasoning": "Let me see."},
        {"text": "First a command."},
        {"tool": "bash", "input": {"command": "echo hello"}},
        {"tool": "write", "input": {"path": "notes/new.md", "content": "written\n"}},
        {"tool": "todo", "input": {"todos": [{"content": "one", "status": "done"}, {"content": "two"}]}},
        {"text": "All is done."},
    )
    async with attached(site, handlers, **shown(claude)) as there:
        events = await there.run(claude_run(task))
    assert of_type(events, "run.finished")[0]["outcome"] == "completed"
    assert [data["text"] for data in of_type(events, "message.done")] == ["First a command.", "All is done."]
    assert [data["name"] for data in of_type(events, "tool.start")] == ["bash", "write", "todo"]
    assert [data["status"] for data in of_type(events, "tool.end")] == ["ok", "ok", "ok"]
    assert of_type(events, "tool.end")[0]["output"] == "hello"
    assert [todo["status"] for todo in of_type(events, "todo.snapshot")[0]["todos"]] == ["done", "todo"]
    assert of_type(events, "usage")
    assert there.spec.folder is not None
    assert (there.spec.folder / "notes" / "new.md").read_text() == "written\n"
    session_id = of_type(events, "run.finished")[0]["sdk_session_id"]
    assert session_id

    model.requests.clear()
    async with attached(site, handlers, **shown(claude)) as elsewhere:  # another sandbox, another home
        later = await elsewhere.run(claude_run("What did I ask before?", resume=session_id))
    assert of_type(later, "run.finished")[0]["outcome"] == "completed"
    told = b"".join(request.body for request in model.requests)
    assert b"All is done." in told
    assert b"First a command." in told
