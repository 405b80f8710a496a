"""What runs left in a session's folder lands or is thrown away, also when the folder has to be made again."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_world import AgentWorld
from tests.support.scripted_model import script

from contextbase.errors import Conflict, NotFound, Unavailable
from contextbase.ids import ContentHash
from contextbase.sessions import snapshots
from contextbase.sessions.model import AgentSession, Land
from contextbase.sessions.restored_files import put_entries
from contextbase.sessions.snapshot_model import SessionFile, SnapshotReason
from contextbase.sessions.snapshots import SessionSnapshots
from contextbase.sessions.states import RunState
from contextbase.sessions.worker_host import WorkerHost
from contextbase.vocabulary import LandingState
from contextbase.workspaces.model import Owner

pytestmark = pytest.mark.timeout(1200)

WRITE = {"tool": "write", "input": {"path": "a.md", "content": "a\n"}}
REMEMBER = {"tool": "bash", "input": {"command": "echo 1 > .agent_data/memory.json"}}


async def test_work_of_a_removed_worker_lands_from_its_snapshot(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script(WRITE))
    await agents.host.remove(session)
    report = await agents.services.waiting_work.land(agents.owner, session.id)
    assert report.counts == {"written": 1}
    assert await agents.read("a.md") == b"a\n"


async def test_discarded_work_does_not_come_back_with_the_snapshot(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script(WRITE, {"tool": "bash", "input": {"command": "rm -f kept.md; mkdir -p build"}}))
    report = await agents.services.waiting_work.discard(agents.owner, session.id)
    assert report.state is LandingState.DISCARDED
    await agents.host.remove(session)
    run = await agents.done(session, script({"tool": "bash", "input": {"command": "ls > seen.md"}}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert (await agents.folder(session) / "seen.md").read_text().split() == ["seen.md"]


async def test_work_is_kept_when_its_discarding_is_cut_off(agents: AgentWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script(WRITE))

    async def cut_off(*_: object) -> None:
        raise Unavailable("The process ends here.")

    with monkeypatch.context() as patched:
        patched.setattr(type(agents.host), "_created", cut_off)
        with pytest.raises(Unavailable):
            await agents.services.waiting_work.discard(agents.owner, session.id)
    report = await agents.services.waiting_work.land(agents.owner, session.id)
    assert report.counts == {"written": 1}


@pytest.mark.parametrize("comes_next", ["upkeep", "decision", "run"])
async def test_a_folder_is_made_whole_again_when_its_discarding_is_cut_off_half_way(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch, comes_next: str
) -> None:
    session = await agents.session(land=Land.NEVER)
    memory = "for n in 1 2 3; do echo $n > .agent_data/memory-$n.json; done"
    await agents.done(session, script(WRITE, {"tool": "bash", "input": {"command": memory}}))

    def half(work: Path, owner: Owner, files: Sequence[SessionFile], contents: Mapping[ContentHash, bytes]) -> None:
        put_entries(work, owner, files[: len(files) // 2], contents)
        raise Unavailable("The process ends here.")

    with monkeypatch.context() as patched:
        patched.setattr(snapshots, "put_entries", half)
        with pytest.raises(Unavailable):
            await agents.services.waiting_work.discard(agents.owner, session.id)
    if comes_next == "upkeep":
        await agents.workers.upkeep.sweep()
    elif comes_next == "decision":
        report = await agents.services.waiting_work.land(agents.owner, session.id)
        assert report.counts == {"written": 1}
    else:
        run = await agents.done(session, script({"text": "Here."}))
        assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    folder = await agents.folder(session)
    assert sorted(one.name for one in (folder / ".agent_data").glob("memory-*")) == [
        f"memory-{n}.json" for n in (1, 2, 3)
    ]
    assert (folder / "a.md").read_text() == "a\n"


async def test_a_message_sent_while_work_is_discarded_waits_for_the_new_folder(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script(WRITE))
    deciding = asyncio.create_task(agents.services.waiting_work.discard(agents.owner, session.id))
    run = await agents.send(session, script({"tool": "bash", "input": {"command": "ls > seen.md"}}))
    try:
        await deciding
        expected = ["seen.md"]
    except Conflict:  # the message was first
        expected = ["a.md", "seen.md"]
    ended = await agents.ended(run)
    assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
    assert (await agents.folder(session) / "seen.md").read_text().split() == expected


async def test_nobody_else_decides_about_a_sessions_work(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script(WRITE))
    stranger = session.caller()  # not even its agent
    for decide in (agents.services.waiting_work.land, agents.services.waiting_work.discard):
        with pytest.raises(NotFound):
            await decide(stranger, session.id)


async def test_a_folder_that_is_not_whole_is_not_stored_by_a_sweep_that_began_before(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script(WRITE, REMEMBER))
    upkeep = agents.workers.upkeep
    storing, is_waiting = asyncio.Event(), asyncio.Event()
    take, sync = SessionSnapshots.take, WorkerHost.sync

    async def slow(own: SessionSnapshots, session: AgentSession, reason: SnapshotReason, **options: Any) -> object:
        if reason is SnapshotReason.PRE_DISCARD:
            storing.set()
            await is_waiting.wait()
        return await take(own, session, reason, **options)

    async def waiting(own: WorkerHost, *arguments: Any) -> None:
        is_waiting.set()
        await sync(own, *arguments)

    def full(*_: object) -> None:
        raise Unavailable("The disk is full.")

    with monkeypatch.context() as patched:
        patched.setattr(SessionSnapshots, "take", slow)
        patched.setattr(snapshots, "put_entries", full)
        patched.setattr(WorkerHost, "sync", waiting)
        discarding = asyncio.create_task(agents.services.waiting_work.discard(agents.owner, session.id))
        await storing.wait()
        async with agents.services.core.database.connection() as connection:
            await upkeep.repository.request_sync(connection, session.id, upkeep.clock.now())
        sweeping = asyncio.create_task(upkeep.sweep())
        with pytest.raises(Unavailable):
            await discarding
        await sweeping
    await agents.host.folder(session)
    folder = await agents.folder(session)
    assert (folder / "a.md").read_bytes() == b"a\n"
    assert (folder / ".agent_data" / "memory.json").read_bytes() == b"1\n"


async def test_a_session_whose_folder_is_not_whole_can_be_removed_and_comes_back(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script(WRITE))
    await agents.host.sync(session, SnapshotReason.CATCH_UP)
    await agents.host.rows.remake(session)  # as when a kill cuts off a discard
    (await agents.folder(session) / "a.md").unlink()
    await agents.host.remove(session)
    await agents.host.folder(session)
    assert (await agents.folder(session) / "a.md").read_bytes() == b"a\n"
