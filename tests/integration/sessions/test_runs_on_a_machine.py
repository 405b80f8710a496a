"""Runs from their message to what landed, on a real machine with sandboxes and executors."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.db.database import DatabaseAddress
from contextbase.errors import DatabaseUnavailable
from contextbase.ids import TreePath
from contextbase.sandbox.model import SandboxState
from contextbase.sessions.model import ClaimedRun, Land, RunWishes
from contextbase.sessions.queue import RunQueue
from contextbase.sessions.run_work import RunWork
from contextbase.sessions.states import RunState
from contextbase.vocabulary import SendMode

pytestmark = pytest.mark.timeout(1200)
_BOUND = 600


async def test_what_an_agent_writes_lands_in_the_project(agents: AgentWorld) -> None:
    await agents.put({"notes.md": b"# Notes\n"})
    session = await agents.session()
    run = await agents.done(
        session,
        script({"tool": "write", "input": {"path": "plan.md", "content": "# Plan\n"}}, {"text": "The plan is there."}),
    )
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert await agents.read("plan.md") == b"# Plan\n"
    assert run.landed is not None
    assert run.landed["counts"] == {"written": 1}


async def test_a_claim_whose_answer_was_lost_is_worked_on_all_the_same(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await agents.session()
    whole, lost = RunQueue._claims, asyncio.Event()

    async def broken_once(self: RunQueue, *arguments: Any) -> Any:
        if lost.is_set():
            return await whole(self, *arguments)
        lost.set()
        raise DatabaseUnavailable("The connection to the database was lost.")

    monkeypatch.setattr(RunQueue, "_claims", broken_once)
    run = await agents.done(session, script({"text": "Hello."}))
    assert lost.is_set()
    assert (run.state, run.attempt) == (RunState.SUCCEEDED, 1), (run.reason, run.message)


async def test_a_run_that_its_machine_lost_and_claimed_again_goes_on_at_once(agents: AgentWorld) -> None:
    """As after the database was away for longer than a lease, while the agent said nothing."""
    session = await agents.session()
    wait = {"tool": "bash", "input": {"command": "while [ ! -e go ]; do sleep 0.1; done; rm go"}}
    run = await agents.send(session, script(wait, {"text": "Done."}))
    await agents.told(session, "tool.start")
    async with agents.services.core.database.connection() as connection:
        await connection.execute("UPDATE run_queue SET lease_until = clock_timestamp() - interval '1 second'")
    assert await agents.services.core.sessions.queue.expire() == 1
    async with asyncio.timeout(30):  # less than a lease
        assert (await agents.in_state(run, RunState.RUNNING)).attempt == 2
    (await agents.folder(session) / "go").touch()
    ended = await agents.ended(run)
    assert (ended.state, ended.attempt) == (RunState.SUCCEEDED, 2), (ended.reason, ended.message)


async def test_a_run_that_ends_while_its_machine_asks_what_it_holds_is_not_begun_again(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session, runs = await agents.session(), agents.workers.runs
    wait = {"tool": "bash", "input": {"command": "while [ ! -e go ]; do sleep 0.1; done; rm go"}}
    run = await agents.send(session, script(wait, {"text": "Done."}))
    await agents.told(session, "tool.start")
    folder, whole, begun = await agents.folder(session), RunQueue.claimed_by, list[ClaimedRun]()

    async def slow(self: RunQueue, machine: str) -> Any:
        found = await whole(self, machine)
        (folder / "go").touch()
        [(_, task, _)] = runs._work.values()
        await asyncio.wait({task})
        return found

    monkeypatch.setattr(RunQueue, "claimed_by", slow)
    monkeypatch.setattr(RunWork, "__init__", lambda *arguments: begun.append(arguments[-1]))
    runs._is_adopted = False  # as after an answer that was lost
    await runs._adopt()
    assert (await agents.ended(run)).state is RunState.SUCCEEDED
    assert begun == []


async def test_the_next_turn_sees_what_others_committed_meanwhile(agents: AgentWorld) -> None:
    await agents.put({"notes.md": b"one\n"})
    session = await agents.session()
    await agents.done(session, script({"text": "Hello."}))
    await agents.put({"notes.md": b"one\ntwo\n"})
    run = await agents.done(
        session, script({"tool": "bash", "input": {"command": "cp notes.md seen.md"}}, {"text": "Copied."})
    )
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert await agents.read("seen.md") == b"one\ntwo\n"


async def test_two_sessions_edit_one_file_and_both_edits_are_in(agents: AgentWorld) -> None:
    await agents.put({"list.md": b"".join(b"- %d\n" % number for number in range(20))})
    first, second = await agents.session(), await agents.session()
    runs = [
        await agents.send(one, script({"tool": "bash", "input": {"command": f"sed -i 's/^{old}$/{new}/' list.md"}}))
        for one, old, new in ((first, "- 2", "- two"), (second, "- 17", "- seventeen"))
    ]
    for run in [await agents.ended(run) for run in runs]:
        assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    merged = await agents.read("list.md")
    assert merged is not None
    assert {b"- two", b"- seventeen"} <= set(merged.splitlines())


async def test_a_message_that_the_working_turn_takes_gets_no_run_of_its_own(agents: AgentWorld) -> None:
    session = await agents.session()
    wait = {"tool": "bash", "input": {"command": "while [ ! -e go ]; do sleep 0.1; done; rm go"}}
    work = await agents.send(session, script(wait, {"text": "As planned."}))
    await agents.told(session, "tool.start")
    service, wishes = agents.services.core.sessions.service, RunWishes(mode=SendMode.STEER)
    said = script({"text": "Steered."})
    message = await service.send(agents.owner, session.id, said, wishes=wishes)
    assert message.mode is SendMode.STEER
    worker = agents.host.live(session.id)
    assert worker is not None
    async with asyncio.timeout(_BOUND):
        while True:
            if (await worker.link.call("GET", "/status")).json()["steering"] == 1:
                break
            await asyncio.sleep(0.05)
    (await agents.folder(session) / "go").touch()
    ended = await agents.ended(work)
    assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
    taken = await agents.ended(message)
    assert (taken.state, taken.reason, taken.attempt) == (RunState.SUCCEEDED, "steered", 0)
    page = await agents.services.core.sessions.chats.messages(agents.owner, session.id)
    user, agent = page.messages
    assert user["metadata"]["run_id"] == str(work.id)
    [steering] = [part for part in agent["parts"] if part["type"] == "steering-message"]
    assert (steering["id"], steering["parts"][0]["text"]) == (f"{message.id}:prompt", said)
    assert [part["text"] for part in agent["parts"] if part["type"] == "text"] == ["Steered."]


async def test_a_session_that_never_lands_keeps_its_work_in_the_folder(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    run = await agents.done(session, script({"tool": "write", "input": {"path": "a.md", "content": "a\n"}}))
    assert run.state is RunState.SUCCEEDED
    assert run.landed is not None
    assert run.landed["state"] == "waits"
    assert await agents.read("a.md") is None
    run = await agents.done(session, script({"tool": "bash", "input": {"command": "cat a.md > b.md"}}))
    assert run.landed is not None
    assert run.landed["counts"] == {"uncommitted": 2}


async def test_a_canceled_run_stops_its_agent_and_keeps_its_work(agents: AgentWorld) -> None:
    session = await agents.session()
    run = await agents.send(
        session,
        script(
            {"tool": "write", "input": {"path": "half.md", "content": "half\n"}}, {"pause": 3000}, {"text": "Never."}
        ),
    )
    await agents.told(session, "tool.end")
    await agents.services.core.sessions.service.cancel(agents.owner, run.id)
    ended = await agents.ended(run)
    assert ended.state is RunState.CANCELED
    assert ended.landed is not None
    assert ended.landed["counts"] == {"uncommitted": 1}
    assert await agents.read("half.md") is None


async def test_what_a_removed_worker_had_is_there_in_the_next_run(agents: AgentWorld) -> None:
    """Uncommitted work, ignored files, odd names and the agent program's own data come back from the snapshot."""
    await agents.put({"kept.md": b"kept\n", "gone.md": b"gone\n", ".gitignore": b"build/\n"})
    session = await agents.session(land=Land.NEVER)
    make = (
        "echo new > new.md && rm gone.md && mkdir -p build .agent_data/tool && echo made > build/out.bin"
        " && echo state > .agent_data/tool/state.json && ln -s kept.md link && chmod +x new.md"
    )
    await agents.done(session, script({"tool": "bash", "input": {"command": make}}))
    await agents.host.remove(session)
    assert agents.homes() == []
    run = await agents.done(session, script({"tool": "bash", "input": {"command": f"{{ {_SHOW}; }} > shown.md"}}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    shown = (await agents.folder(session) / "shown.md").read_text()
    assert shown.split() == ["new", "kept", "made", "state", "kept.md", "executable", "absent"]


_SHOW = (
    "cat new.md kept.md build/out.bin .agent_data/tool/state.json; readlink link;"
    " test -x new.md && echo executable; test -e gone.md || echo absent"
)


async def test_uncommitted_work_comes_back_on_the_base_it_was_made_from(agents: AgentWorld) -> None:
    """Or what others changed meanwhile in the same file would be taken back when it lands."""
    lines = [b"line %d\n" % number for number in range(9)]
    await agents.put({"text.md": b"".join(lines)})
    session = await agents.session(land=Land.NEVER)
    edit = "sed -i 's/line 1/line ONE/' text.md"
    run = await agents.done(session, script({"tool": "bash", "input": {"command": edit}}))
    await agents.put({"text.md": b"".join([*lines[:-1], b"theirs\n"])})
    await agents.host.remove(session)
    await agents.host.folder(session)
    report = await agents.landing.commit(session, run)
    assert report.counts == {"merged": 1}
    landed = await agents.read("text.md")
    assert landed is not None
    assert b"line ONE" in landed
    assert landed.endswith(b"theirs\n")


async def test_a_stopped_worker_starts_again_with_the_next_message(agents: AgentWorld) -> None:
    session = await agents.session()
    await agents.done(session, script({"tool": "bash", "input": {"command": "echo here > ~/note"}}))
    await agents.host.stop(session)
    run = await agents.done(session, script({"tool": "bash", "input": {"command": "cat ~/note > home.md"}}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert await agents.read("home.md") == b"here\n"


async def test_a_sandbox_removed_behind_our_back_is_made_again(agents: AgentWorld) -> None:
    session = await agents.session()
    await agents.done(session, script({"text": "Hello."}))
    live = agents.host.live(session.id)
    assert live is not None
    driver = await agents.host.driving.driver()
    await driver.remove(live.sandbox_id)
    run = await agents.done(session, script({"tool": "write", "input": {"path": "on.md", "content": "on\n"}}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert await agents.read("on.md") == b"on\n"


async def test_a_run_goes_on_when_the_server_is_started_again(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    """The executor outlives the process: nothing is done twice, and no event is lost or doubled."""
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        async with open_agent_world(address, tmp_path / "data", keeps_mounts=True) as first:
            session = await first.session()
            count = {"tool": "bash", "input": {"command": "echo once >> count.md"}}
            run = await first.send(session, script(count, {"pause": 3}, {"text": "Counted."}, count))
            await first.told(session, "tool.end")
        async with open_agent_world(address, tmp_path / "data", project_id=first.project_id) as second:
            ended = await second.ended(run)
            assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
            assert ended.attempt == 1
            assert await second.read("count.md") == b"once\nonce\n"
            events = await second.events(session)
    assert [event.kind for event in events].count("run.finished") == 1
    assert [event.kind for event in events].count("tool.start") == 2


async def test_a_session_of_a_folder_sees_and_changes_that_folder_alone(agents: AgentWorld) -> None:
    await agents.put({"docs/a.md": b"a\n", "secret.md": b"secret\n"})
    session = await agents.session(folder=TreePath("docs"))
    steps = "ls > seen.md; cat ../secret.md >> seen.md 2>/dev/null; echo b > b.md"
    run = await agents.done(session, script({"tool": "bash", "input": {"command": steps}}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert await agents.read("docs/b.md") == b"b\n"
    assert await agents.read("docs/seen.md") == b"a.md\nseen.md\n"
    await agents.host.remove(session)
    run = await agents.done(session, script({"tool": "bash", "input": {"command": "cat b.md > c.md"}}))
    assert await agents.read("docs/c.md") == b"b\n"


async def test_a_machine_that_stops_leaves_no_idle_sandbox_running(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        async with open_agent_world(address, tmp_path / "data", keeps_mounts=True) as first:
            session = await first.session()
            await first.done(session, script({"text": "Hello."}))
        async with open_agent_world(address, tmp_path / "data", project_id=first.project_id) as second:
            driver = await second.host.driving.driver()
            assert [sandbox.state for sandbox in await driver.found()] == [SandboxState.STOPPED]
            run = await second.done(session, script({"text": "Hello again."}))
            assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
