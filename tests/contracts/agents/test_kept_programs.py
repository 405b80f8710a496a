"""Agent programs that wait for the next turn of their conversation, so that it need not start them."""

from typing import Any

from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import OF_A_RUN, PROGRAMS, Program, inside, of_type, outcome
from tests.support.executor_site import Attached, attached, gateway_handler
from tests.support.mcp_servers import PROGRAM as SERVER_OF_MCP
from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, script

KEPT = {"limits": {"keep_seconds": 3600}}


async def kept_process(there: Attached) -> int | None:
    status = (await there.link.call("GET", "/status")).json()
    assert status["state"] == "idle"
    kept: int | None = status["kept_process"]
    return kept


async def said(there: Attached, body: dict[str, Any]) -> str:
    """The conversation's own id, once the turn has ended well."""
    events = await there.run(body)
    assert outcome(events) == "completed", events
    assert all(data.get("cli_version") for data in of_type(events, "run.status")[1:])
    return str(of_type(events, "run.finished")[0]["sdk_session_id"])


@in_sandboxes("site", slow_in="docker")
async def test_the_next_turn_is_taken_by_the_same_process_which_sleeps_meanwhile(site: Site, program: Program) -> None:
    model = RecordedModel()
    handlers = {"model": gateway_handler(model)}
    write = {"tool": "bash", "input": {"command": "echo one > one.txt"}}
    async with attached(site, handlers, **program.shown()) as there:
        conversation = await said(there, program.run(script(write, {"text": "It is 41."}), **KEPT))
        process = await kept_process(there)
        assert process is not None
        await inside(there, f'[ "$({OF_A_RUN})" = /proc/{process}/environ ]')  # nothing else of the turn is left
        await inside(there, f"until grep -q '^State:.T' /proc/{process}/status; do sleep 0.05; done")
        spec = there.spec
    async with attached(site, handlers, spec=spec) as again:  # as a server that was started again
        model.requests.clear()
        events = await again.run(program.run(script({"text": "Now 42."}), resume=conversation, **KEPT))
        assert outcome(events) == "completed", events
        assert [data["text"] for data in of_type(events, "message.done")] == ["Now 42."]
        assert of_type(events, "run.finished")[0]["sdk_session_id"] == conversation
        assert any(b"It is 41." in request.body for request in model.requests)
        assert await kept_process(again) == process
        assert of_type(await again.run(program.run(script({"text": "43."}), resume=conversation)), "message.done")
        assert await kept_process(again) is None  # that turn did not ask for it
        await inside(again, f'[ -z "$({OF_A_RUN})" ]')


@in_sandboxes("site")
async def test_one_is_kept_though_a_login_takes_longer_than_the_turn(site: Site, program: Program) -> None:
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **program.shown()) as there:
        await inside(there, "echo 'sleep 86398' > ~/.profile")
        await said(there, program.run(script({"text": "It is 41."}), **KEPT))
        assert await kept_process(there) is not None


@in_sandboxes("site")
async def test_one_that_is_killed_while_it_sleeps_is_started_again_and_nothing_is_lost(
    site: Site, program: Program
) -> None:
    model = RecordedModel()
    async with attached(site, {"model": gateway_handler(model)}, **program.shown()) as there:
        conversation = await said(there, program.run(script({"text": "It is 41."}), **KEPT))
        await inside(there, f"kill -9 {await kept_process(there)}")
        assert await said(there, program.run(script({"text": "Now 42."}), resume=conversation, **KEPT)) == conversation
        assert any(b"It is 41." in request.body for request in model.requests)
        second = await kept_process(there)
        assert second is not None
        pid = (await there.link.call("GET", "/status")).json()["pid"]
        await inside(there, f"kill -9 {pid}")  # the executor itself: its successor wants no program of another
        assert await said(there, program.run(script({"text": "Now 43."}), resume=conversation, **KEPT)) == conversation
        assert b"Now 42." in model.requests[-1].body
        assert await kept_process(there) not in (None, second)
        await inside(there, f"[ ! -e /proc/{second} ]")


@in_sandboxes("site")
async def test_one_that_slept_for_long_is_ended_and_so_is_one_that_has_children_or_was_stopped(
    site: Site, program: Program
) -> None:
    async with attached(site, {"model": gateway_handler(RecordedModel())}, **program.shown()) as there:
        conversation = await said(there, program.run(script({"text": "41."}), limits={"keep_seconds": 0.01}))
        await inside(there, f'while [ -n "$({OF_A_RUN})" ]; do sleep 0.05; done')
        assert await kept_process(there) is None
        left = {"tool": "bash", "input": {"command": "nohup sleep 86399 >/dev/null 2>&1 & echo started"}}
        await said(there, program.run(script(left, {"text": "42."}), resume=conversation, **KEPT))
        kept = await kept_process(there)  # None: what it left was below it
        await inside(there, f'[ "$({OF_A_RUN})" = "{"" if kept is None else f"/proc/{kept}/environ"}" ]')
        command = [site.require_python(), "-c", SERVER_OF_MCP]
        words = {"words": {"command": command, "environment": {"WORD": "blue"}}}  # its own child, which would go on
        await said(there, program.run(script({"text": "43."}), resume=conversation, mcp_servers=words, **KEPT))
        assert await kept_process(there) is None
        await inside(there, f'[ -z "$({OF_A_RUN})" ]')
        body = program.run(script({"text": "I begin."}, {"pause": 600}), resume=conversation, **KEPT)
        after = (await there.link.call("GET", "/status")).json()["last"]
        await there.link.call("POST", "/run", body)
        before = await there.events_until("message.delta", after=after)
        await there.link.call("POST", "/cancel", {"run_id": body["run_id"]})
        await there.events_until("run.finished", after=before[-1]["n"])
        assert await kept_process(there) is None
        await inside(there, f'[ -z "$({OF_A_RUN})" ]')


@in_sandboxes("site")
async def test_one_that_was_started_otherwise_or_remembers_something_else_is_not_used(
    site: Site, program: Program
) -> None:
    programs = list(PROGRAMS.values())
    other = programs[(programs.index(program) + 1) % len(programs)]
    shown = {"read_only": program.shown()["read_only"] + other.shown()["read_only"]}
    model = RecordedModel()
    async with attached(site, {"model": gateway_handler(model)}, **shown) as there:
        conversation = await said(there, program.run(script({"text": "It is 41."}), **KEPT))
        processes = [await kept_process(there)]

        async def again(**values: Any) -> None:
            """In a process of its own, which knows what was said."""
            model.requests.clear()
            body = program.run(script({"text": "I see."}), **{"resume": conversation, **KEPT, **values})
            assert await said(there, body) == conversation
            assert any(b"It is 41." in request.body for request in model.requests)
            processes.append(await kept_process(there))
            assert None not in processes
            assert len(set(processes)) == len(processes), values
            await inside(there, f'[ "$({OF_A_RUN})" = /proc/{processes[-1]}/environ ]')

        await again(model=f"{program.model}-2")
        await said(there, other.run(script({"text": "Mine is 7."}), **KEPT))
        processes.append(await kept_process(there))
        await again()
        assert there.spec.folder is not None
        [memory, *_] = [
            path for path in (there.spec.folder / ".agent_data" / program.name).rglob("*") if path.suffix in MEMORY
        ]
        memory.touch()  # as if somebody had taken the conversation elsewhere
        await again()
        there.write("AGENTS.md", "Speak of the 44.")
        if program.name == "opencode":  # it is told with each message
            await said(there, program.run(script({"text": "I see."}), resume=conversation, **KEPT))
            assert await kept_process(there) == processes[-1]
        else:
            await again()
        assert b"Speak of the 44." in model.requests[-1].body


MEMORY = {".jsonl", ".db"}
