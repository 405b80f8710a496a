"""Servers, executors and agent programs that die, and programs that are not there."""

import asyncio
import json
import os
import signal
import sys
from typing import Any

from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import OF_A_RUN, Program, inside, of_type, outcome
from tests.support.executor_site import BOUND, attached, driver_values, gateway_handler
from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, script


@in_sandboxes("site", slow_in="docker")
async def test_a_server_that_is_killed_leaves_it_at_work_and_the_next_one_gets_every_event_once(
    site: Site, program: Program
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
    async with attached(site, {}, **program.shown()) as there:
        spec, python = there.spec, site.require_python()
    values = {"driver": driver_values(there.driver), "sandbox": str(spec.id), "python": python}
    body = program.run(task)
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
    assert [data["output"].strip() for data in of_type(events, "tool.end")] == ["one", "two"]


@in_sandboxes("site", slow_in="docker")
async def test_a_program_that_dies_ends_the_run_and_says_so(site: Site, program: Program) -> None:
    task = script({"text": "Soon it dies."}, {"pause": 600})
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **program.shown()) as there:
        body = program.run(task)
        await there.link.call("POST", "/run", body)
        before = await there.events_until("message.delta")
        await inside(there, f"kill -9 $({OF_A_RUN} | cut -d/ -f3)")
        events = before + await there.events_until("run.finished", after=before[-1]["n"])
        assert outcome(events) == "agent_died", events
        assert of_type(events, "run.error")[0]["retryable"]


@in_sandboxes("site")
async def test_an_executor_that_is_killed_is_started_again_and_ends_the_run(site: Site, program: Program) -> None:
    task = script({"text": "Soon the executor dies."}, {"pause": 600})
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **program.shown()) as there:
        body = program.run(task)
        await there.link.call("POST", "/run", body)
        before = await there.events_until("message.delta")
        session_id = next(data["sdk_session_id"] for data in of_type(before, "run.status") if "sdk_session_id" in data)
        status = (await there.link.call("GET", "/status")).json()
        await inside(there, f"kill -9 {status['pid']}")
        events = before + await there.events_until("run.finished", after=before[-1]["n"])
        assert outcome(events) == "executor_died", events
        assert of_type(events, "run.finished")[0]["sdk_session_id"] == session_id
        await inside(there, f'[ -z "$({OF_A_RUN})" ]')
        later = await there.run(program.run(script({"text": "Back."}), resume=session_id))
        assert outcome(later) == "completed", later


@in_sandboxes("site", slow_in="docker")
async def test_a_program_that_is_not_there_is_said_to_be_missing(site: Site, program: Program) -> None:
    async with attached(site, {}) as there:
        events = await there.run(program.run("Do it.", provider=program.name))
        versions = (await there.link.call("POST", "/workspace/validate")).json()["agents"]
    assert outcome(events) == "agent_missing", events
    assert versions[program.provider] is None
