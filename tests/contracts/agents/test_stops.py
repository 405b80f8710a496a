"""Turns of agent programs that somebody stops."""

from typing import Any

from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import OF_A_RUN, Program, inside, of_type, outcome
from tests.support.executor_site import Attached, attached, gateway_handler
from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, script


async def stopped(there: Attached, body: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    """All events of a run that is canceled when it tells of this kind."""
    after = (await there.link.call("GET", "/status")).json()["last"]
    await there.link.call("POST", "/run", body)
    before = await there.events_until(kind, after=after)
    await there.link.call("POST", "/cancel", {"run_id": body["run_id"]})
    events = before + await there.events_until("run.finished", after=before[-1]["n"])
    assert outcome(events) == "canceled", events
    return events


@in_sandboxes("site")
async def test_it_is_canceled_while_it_speaks_and_while_it_asks_and_goes_on_later(site: Site, program: Program) -> None:
    model = RecordedModel()
    speak = script({"text": "I begin with this."}, {"pause": 600}, {"text": "Never said."})
    ask = script({"tool": "ask", "input": {"question": "Which?", "options": ["A", "B"]}}, {"text": "Never said."})
    async with attached(site, {"model": gateway_handler(model)}, **program.shown()) as there:
        events = await stopped(there, program.run(speak), "message.delta")
        assert [data["text"] for data in of_type(events, "message.done")] == ["I begin with this."]
        session_id = of_type(events, "run.finished")[0]["sdk_session_id"]
        events = await stopped(there, program.run(ask, resume=session_id), "human_loop.requested")
        assert (await there.link.call("GET", "/human-loop/pending")).json() == {"questions": []}
        assert of_type(events, "run.finished")[0]["sdk_session_id"] == session_id
        later = await there.run(program.run(script({"text": "Here I am."}), resume=session_id))
        assert outcome(later) == "completed", later
        assert [data["text"] for data in of_type(later, "message.done")] == ["Here I am."]
        assert (await there.link.call("POST", "/cancel")).json() == {"state": "idle"}


@in_sandboxes("site", slow_in="docker")
async def test_it_is_canceled_in_the_middle_of_a_command_and_nothing_of_it_is_left(
    site: Site, program: Program
) -> None:
    command = "nohup setsid sleep 86399 >/dev/null 2>&1 & sleep 0.1; sed n; while true; do sleep 86398; done"
    task = script({"tool": "bash", "input": {"command": command}})
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **program.shown()) as there:
        events = await stopped(there, program.run(task), "tool.start")
        assert [data["status"] for data in of_type(events, "tool.end")] == ["error"]
        await inside(there, f'[ -z "$({OF_A_RUN})" ]')
