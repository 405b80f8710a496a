"""What agent programs say and do in a turn, and what they know in the next one."""

import asyncio
import shutil
from pathlib import Path
from uuid import uuid4

from tests.support.agent_matrix import in_sandboxes
from tests.support.agent_program_cases import Program, of_type, outcome
from tests.support.executor_site import attached, gateway_handler
from tests.support.sandbox_drivers import Site
from tests.support.scripted_model import RecordedModel, script

from contextbase.agents.model import Capability


@in_sandboxes("site", slow_in="docker")
async def test_it_says_uses_tools_writes_files_and_is_resumed_elsewhere(site: Site, program: Program) -> None:
    model = RecordedModel()
    handlers = {"model": gateway_handler(model)}
    task = script(
        {"reasoning": "Let me see."},
        {"text": "First a command."},
        {"tool": "bash", "input": {"command": "echo hello"}},
        {"tool": "write", "input": {"path": "notes/new.md", "content": "written\n"}},
        {"tool": "todo", "input": {"todos": [{"content": "one", "status": "done"}, {"content": "two"}]}},
        {"tool": "todo", "input": {"todos": [{"content": "new"}, {"content": "two", "status": "doing"}]}},
        {"text": "All is done."},
    )
    async with attached(site, handlers, **program.shown()) as there:
        events = await there.run(program.run(task))
    assert outcome(events) == "completed", events
    assert [data["text"] for data in of_type(events, "message.done")] == ["First a command.", "All is done."]
    assert [data["name"] for data in of_type(events, "tool.start") if data["name"] != "todo"] == ["bash", "write"]
    assert {data["status"] for data in of_type(events, "tool.end")} == {"ok"}
    assert [data["text"] for data in of_type(events, "reasoning.done")] == ["Let me see."]
    assert of_type(events, "tool.end")[0]["output"].strip() == "hello"
    assert Capability.TODO in program.capabilities
    first, second = (data["todos"] for data in of_type(events, "todo.snapshot"))
    assert [todo["status"] for todo in (*first, *second)] == ["done", "todo", "todo", "doing"]
    assert first[1]["todo_id"] == second[1]["todo_id"]
    assert of_type(events, "usage")
    assert there.spec.folder is not None
    assert (there.spec.folder / "notes" / "new.md").read_text() == "written\n"
    session_id = of_type(events, "run.finished")[0]["sdk_session_id"]
    assert session_id

    model.requests.clear()
    async with attached(site, handlers, **program.shown()) as elsewhere:  # another sandbox, another home
        later = await elsewhere.run(program.run("What did I ask before?", resume=session_id))
    assert outcome(later) == "completed", later
    told = b"".join(request.body for request in model.requests)
    assert b"All is done." in told
    assert b"First a command." in told


HISTORY = "Person: Which number?\n\nAgent: It was 40."


async def copied(source: Path, target: Path) -> None:
    process = await asyncio.create_subprocess_exec("cp", "-a", source, target)
    assert await process.wait() == 0


@in_sandboxes("site")
async def test_it_is_told_what_it_does_not_know_and_its_memory_goes_back_with_its_data(
    site: Site, program: Program, tmp_path: Path
) -> None:
    """A resume that fails, state of a newer program, and what rewind and fork do: its data as they were, in a new
    home."""
    model = RecordedModel()
    handlers = {"model": gateway_handler(model)}
    unknown = "ses_00000000000000000000000000" if program.name == "opencode" else str(uuid4())
    async with attached(site, handlers, **program.shown()) as there:
        kept_program = {"limits": {"keep_seconds": 3600}}  # what it knows is in its files while it sleeps
        first = await there.run(
            program.run(script({"text": "It is 41."}), resume=unknown, history=HISTORY, **kept_program)
        )
        assert outcome(first) == "completed", first
        assert [data["reason"] for data in of_type(first, "conversation.rebuilt")] == ["resume_failed"]
        assert any(b"It was 40." in request.body for request in model.requests)
        session_id = of_type(first, "run.finished")[0]["sdk_session_id"]
        assert session_id not in (None, unknown)
        assert there.spec.folder is not None
        data, kept = there.spec.folder / ".agent_data", tmp_path / "kept"
        await copied(data, kept)
        version = next(data["cli_version"] for data in of_type(first, "run.status") if data.get("cli_version"))
        known = {"resume": session_id, "history": HISTORY}
        second = await there.run(program.run(script({"text": "Now it is 42."}), state_version=version, **known))
        assert outcome(second) == "completed", second
        assert not of_type(second, "conversation.rebuilt")
        model.requests.clear()
        refused = await there.run(program.run("Go on.", state_version="999.0.0", **known))
        assert outcome(refused) == "agent_outdated", refused
        assert model.requests == []
        await there.driver.stop(there.spec.id)
    shutil.rmtree(data)
    await copied(kept, data)
    async with attached(site, handlers, **program.shown()) as elsewhere:  # on the same folder, with another home
        third = await elsewhere.run(program.run(script({"text": "Here I am."}), **known))
    assert outcome(third) == "completed", third
    told = b"".join(request.body for request in model.requests)
    assert b"It is 41." in told
    assert b"Now it is 42." not in told
