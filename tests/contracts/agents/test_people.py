"""What agent programs ask people, and what people say to them in the middle of a turn."""

from uuid import uuid4

from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import Program, of_type, outcome
from tests.support.executor_site import attached, gateway_handler
from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, script

from contextbase.agents.model import Capability


@in_sandboxes("site")
async def test_a_person_answers_permits_refuses_and_comes_back_when_the_sandbox_is_gone(
    site: Site, program: Program
) -> None:
    assert Capability.HUMAN_LOOP in program.capabilities
    model = RecordedModel()
    handlers = {"model": gateway_handler(model)}
    options = [{"label": "Blue", "description": "As the sky"}, {"label": "Red", "description": "As a rose"}]
    question = {"id": "colour", "header": "Colour", "question": "Which colour?", "options": options}
    task = script(
        {"text": "I must ask."},
        {"tool": program.question_tool, "input": {"questions": [question | {"multiSelect": False}]}},
        {"tool": "bash", "input": {"command": "touch permitted"}},
        {"tool": "write", "input": {"path": "refused.md", "content": "refused\n"}},
        {"tool": "ask", "input": {"question": "Which shape?", "options": ["Round", "Square"]}},
        {"text": "Never said."},
    )
    replies = [{"values": ["Blue"]}, {"decision": "allow_once"}, {"decision": "deny", "reason": "Not now."}]
    async with attached(site, handlers, **program.shown()) as there:
        body = program.run(task, profile="ask")
        await there.link.call("POST", "/run", body)
        events = await there.events_until("human_loop.requested")
        for reply in replies:
            answer = {"question_id": events[-1]["data"]["question_id"], "answer": reply}
            assert (await there.link.call("POST", "/human-loop/reply", answer)).status == 200
            events += await there.events_until("human_loop.requested", after=events[-1]["n"])
        await there.link.call("POST", "/cancel", {"run_id": body["run_id"], "reason": "parked"})
        events += await there.events_until("run.finished", after=events[-1]["n"])
        assert outcome(events) == "canceled", events
        assert there.spec.folder is not None
        assert (there.spec.folder / "permitted").exists()
        assert not (there.spec.folder / "refused.md").exists()
    asked = of_type(events, "human_loop.requested")
    assert [one["kind"] for one in asked] == ["question", "permission", "permission", "question"]
    assert [option["value"] for option in asked[0]["options"]] == ["Blue", "Red"]
    assert "+refused" in asked[2]["context"]["diff"]
    assert any(b"Blue" in answer.encode() for answer in model.answers)

    model.requests.clear()
    session_id = of_type(events, "run.finished")[0]["sdk_session_id"]
    said = "You asked: Which shape?\nThe answer: Round"
    async with attached(site, handlers, **program.shown()) as elsewhere:
        later = await elsewhere.run(
            program.run(f"{said}\n\n{script({'text': 'Round it is.'})}", resume=session_id, attempt=2)
        )
    assert outcome(later) == "completed", later
    assert [data["text"] for data in of_type(later, "message.done")] == ["Round it is."]
    assert any(b"I must ask." in request.body for request in model.requests)


@in_sandboxes("site", slow_in="docker")
async def test_what_a_person_says_meanwhile_reaches_the_model_in_the_same_turn(site: Site, program: Program) -> None:
    """Between two answers, or when all was said: in either case no turn of its own is needed."""
    wait = {"tool": "bash", "input": {"command": "while [ ! -e /workspace/go ]; do sleep 0.1; done"}}
    model = RecordedModel()
    async with attached(site, {"model": gateway_handler(model)}, **program.shown()) as there:
        body, steer_id = program.run(script(wait, {"text": "After the tool."})), str(uuid4())
        await there.link.call("POST", "/run", body)
        await there.events_until("tool.start")
        steer = {"run_id": body["run_id"], "steer_id": steer_id, "text": "Use the blue one."}
        for _ in range(2):  # told twice, it is said once
            answer = (await there.link.call("POST", "/steer", steer)).json()
        given = "given" if Capability.STEER in program.capabilities else "refused"
        assert answer["state"] == given
        there.write("go", "")
        events = await there.events_until("run.finished")
        assert outcome(events) == "completed"
        taken = [event["steer_id"] for event in of_type(events, "message.steered")]
        assert taken == ([steer_id] if given == "given" else [])
        assert any(b"Use the blue one." in one.body for one in model.requests) is (given == "given")
        late = (await there.link.call("POST", "/steer", steer)).json()
        assert late["state"] == "refused"
