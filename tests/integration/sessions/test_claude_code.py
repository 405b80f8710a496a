"""The real Claude Code in a real sandbox, driven by the executor, its model behind the gateway."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path, PurePosixPath
from typing import Any

import pytest
from tests.support.agent_clis import installed
from tests.support.executor_site import Attached, attached, driver_values, gateway_handler, run_body
from tests.support.sandbox_drivers import IMPLEMENTATIONS, Site
from tests.support.scripted_model import RecordedModel, script

from contextbase.sandbox.model import Command


@pytest.fixture(params=["bubblewrap", "docker-folder"])
async def site(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Site]:
    implementation = IMPLEMENTATIONS[request.param]
    given = None if implementation.fixture is None else request.getfixturevalue(implementation.fixture)
    async with implementation.site(tmp_path, given) as site:
        yield site


@pytest.fixture(scope="module")
def claude() -> Path:
    return installed("claude")


BOUND = 120


def claude_run(prompt: str, **values: Any) -> dict[str, Any]:
    return run_body(prompt, provider="claude", **values)


def shown(claude: Path) -> dict[str, Any]:
    return {"read_only": ((claude, PurePosixPath("/opt/agents/claude")),)}


def outcome(events: list[dict[str, Any]]) -> str:
    [finished] = of_type(events, "run.finished")
    assert not of_type(events, "run.error") or finished["outcome"] != "completed"
    return str(finished["outcome"] if not of_type(events, "run.error") else of_type(events, "run.error")[0]["code"])


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
    assert outcome(events) == "completed", events
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
    assert outcome(later) == "completed", later
    told = b"".join(request.body for request in model.requests)
    assert b"All is done." in told
    assert b"First a command." in told


OF_A_RUN = "grep -ls CONTEXTBASE_RUN= /proc/[0-9]*/environ"
"""Processes inside that a run started."""


async def inside(there: Attached, line: str) -> None:
    execution = await there.driver.exec(there.spec.id, Command(argv=("/bin/sh", "-c", line)))
    async with asyncio.timeout(BOUND):
        assert (await execution.wait()).exit_code == 0


async def test_it_is_canceled_while_it_speaks_and_goes_on_later(site: Site, claude: Path) -> None:
    model = RecordedModel()
    task = script({"text": "I begin with this."}, {"pause": 600}, {"text": "Never said."})
    async with attached(site, {"model": gateway_handler(model)}, **shown(claude)) as there:
        body = claude_run(task)
        await there.link.call("POST", "/run", body)
        before = await there.events_until("message.delta")
        await there.link.call("POST", "/cancel", {"run_id": body["run_id"]})
        events = before + await there.events_until("run.finished", after=before[-1]["n"])
        assert outcome(events) == "canceled", events
        assert [data["text"] for data in of_type(events, "message.done")] == ["I begin with this."]
        session_id = of_type(events, "run.finished")[0]["sdk_session_id"]
        later = await there.run(claude_run(script({"text": "Here I am."}), resume=session_id))
        assert outcome(later) == "completed", later
        assert [data["text"] for data in of_type(later, "message.done")] == ["Here I am."]
        assert (await there.link.call("POST", "/cancel")).json() == {"state": "idle"}


async def test_it_is_canceled_in_the_middle_of_a_command_and_nothing_of_it_is_left(site: Site, claude: Path) -> None:
    command = "nohup setsid sleep 86399 >/dev/null 2>&1 & sleep 0.1; sed n; while true; do sleep 86398; done"
    task = script({"tool": "bash", "input": {"command": command}})
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **shown(claude)) as there:
        body = claude_run(task)
        await there.link.call("POST", "/run", body)
        before = await there.events_until("tool.start")
        await there.link.call("POST", "/cancel", {"run_id": body["run_id"]})
        events = before + await there.events_until("run.finished", after=before[-1]["n"])
        assert outcome(events) == "canceled", events
        assert [data["status"] for data in of_type(events, "tool.end")] == ["error"]
        await inside(there, f'[ -z "$({OF_A_RUN})" ]')


async def test_hooks_settings_and_servers_of_the_tree_are_not_run_but_its_instructions_are_read(
    site: Site, claude: Path
) -> None:
    model = RecordedModel()
    bad = {"type": "command", "command": "touch /workspace/hooked"}
    hooks: dict[str, Any] = {name: [{"hooks": [bad]}] for name in ("SessionStart", "UserPromptSubmit", "Stop")}
    hooks |= {name: [{"matcher": "*", "hooks": [bad]}] for name in ("PreToolUse", "PostToolUse")}
    settings = {"hooks": hooks, "permissions": {"deny": ["Bash"]}, "env": {"ANTHROPIC_BASE_URL": "http://127.0.0.1:9"}}
    server = {"mcpServers": {"bad": {"command": "touch", "args": ["/workspace/served"]}}}
    async with attached(site, {"model": gateway_handler(model)}, **shown(claude)) as there:
        there.write(".claude/settings.json", json.dumps(settings))
        there.write(".claude/settings.local.json", json.dumps(settings))
        there.write(".mcp.json", json.dumps(server))
        there.write("CLAUDE.md", "Say please, in this place.")
        task = script({"tool": "bash", "input": {"command": "echo ran"}}, {"text": "Done."})
        events = await there.run(claude_run(task))
        assert outcome(events) == "completed", events
        assert of_type(events, "tool.end")[0]["output"] == "ran"
        assert there.spec.folder is not None
        assert not (there.spec.folder / "hooked").exists()
        assert not (there.spec.folder / "served").exists()
    assert any(b"Say please, in this place." in request.body for request in model.requests)


async def test_a_server_that_is_killed_leaves_it_at_work_and_the_next_one_gets_every_event_once(
    site: Site, claude: Path
) -> None:
    task = script(
        {"text": "Before the server dies."},
        {"tool": "bash", "input": {"command": "echo one"}},
        {"pause": 2},
        {"text": "This answer is asked for again."},
        {"tool": "bash", "input": {"command": "echo two"}},
        {"text": "All is done."},
    )
    spec = None
    async with attached(site, {}, **shown(claude)) as there:
        spec, python = there.spec, site.require_python()
    values = {"driver": driver_values(there.driver), "sandbox": str(spec.id), "python": python}
    body = claude_run(task)
    worker = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "tests.support.attached_server_worker", json.dumps(values | {"body": body})),
        stdout=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )
    first: list[dict[str, Any]] = []
    try:
        async with asyncio.timeout(BOUND):
            assert worker.stdout is not None
            while not of_type(first, "tool.end"):
                first.append(json.loads(await worker.stdout.readline()))
    finally:
        os.kill(worker.pid, signal.SIGKILL)
        await worker.wait()
    async with attached(site, {"model": gateway_handler(RecordedModel())}, spec=spec) as again:
        rest = await again.events_until("run.finished", after=first[-1]["n"])
    events = first + rest
    assert [event["n"] for event in events] == list(range(1, len(events) + 1))
    assert len({event["event_id"] for event in events}) == len(events)
    assert outcome(events) == "completed", events
    texts = [data["text"] for data in of_type(events, "message.done")]
    assert texts == ["Before the server dies.", "This answer is asked for again.", "All is done."]
    assert [data["output"] for data in of_type(events, "tool.end")] == ["one", "two"]


async def test_a_program_that_dies_ends_the_run_and_says_so(site: Site, claude: Path) -> None:
    task = script({"text": "Soon it dies."}, {"pause": 600})
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **shown(claude)) as there:
        body = claude_run(task)
        await there.link.call("POST", "/run", body)
        before = await there.events_until("message.delta")
        await inside(there, f"kill -9 $({OF_A_RUN} | cut -d/ -f3)")
        events = before + await there.events_until("run.finished", after=before[-1]["n"])
        assert outcome(events) == "agent_died", events
        assert of_type(events, "run.error")[0]["retryable"]


async def test_an_executor_that_is_killed_is_started_again_and_ends_the_run(site: Site, claude: Path) -> None:
    task = script({"text": "Soon the executor dies."}, {"pause": 600})
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **shown(claude)) as there:
        body = claude_run(task)
        await there.link.call("POST", "/run", body)
        before = await there.events_until("message.delta")
        session_id = next(data["sdk_session_id"] for data in of_type(before, "run.status") if "sdk_session_id" in data)
        status = (await there.link.call("GET", "/status")).json()
        await inside(there, f"kill -9 {status['pid']}")
        events = before + await there.events_until("run.finished", after=before[-1]["n"])
        assert outcome(events) == "executor_died", events
        assert of_type(events, "run.finished")[0]["sdk_session_id"] == session_id
        await inside(there, f'[ -z "$({OF_A_RUN})" ]')
        later = await there.run(claude_run(script({"text": "Back."}), resume=session_id))
        assert outcome(later) == "completed", later
