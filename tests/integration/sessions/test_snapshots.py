"""What a session has beside its project's files is stored, and is there again where the session goes on."""

import asyncio
import errno
import os
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import pytest
from tests.support.agent_world import AgentWorld
from tests.support.scripted_model import script

from contextbase.identity.levels import Level
from contextbase.identity.policies import Subject
from contextbase.sessions.model import AgentSession, Land
from contextbase.sessions.periodic_snapshots import snapshot_every
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.snapshots import SessionSnapshots
from contextbase.sessions.state_files import StateFile
from contextbase.sessions.states import RunState
from contextbase.sessions.worker_host import WorkerHost
from contextbase.vocabulary import SyncStatus, WorkerState
from contextbase.workspaces.sender import ScanResult

pytestmark = pytest.mark.timeout(1200)


async def put_aside(agents: AgentWorld, session: AgentSession) -> dict[str, str]:
    """What is in the folder of ours in the session's folder, by path."""
    folder = await agents.folder(session) / ".contextbase"
    return {
        str(path.relative_to(folder)): path.read_text()
        for name in ("refused", "conflicts", "replaced", "tmp")
        for path in sorted((folder / name).rglob("*"))
        if path.is_file()
    }


async def test_versions_that_were_put_aside_go_with_the_session(agents: AgentWorld) -> None:
    await agents.put({"kept/plan.md": b"ours\n"})
    everyone = Subject.parse("everyone")
    policies = agents.services.core.policies
    await policies.put_rule(agents.owner, agents.project_id, subject=everyone, pattern="kept/**", level=Level.READ)
    session = await agents.session()
    run = await agents.done(session, script({"tool": "bash", "input": {"command": "echo mine > kept/plan.md"}}))
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    kept = {"refused/kept/plan.md": "mine\n"}
    assert await put_aside(agents, session) == kept

    own = await agents.folder(session) / ".contextbase"
    more = {
        "conflicts/a.md/yours": "of a conflict\n",
        "refused/.cache/settings": "of a folder that is a cache elsewhere\n",
        "replaced/0-1": "written after a merge had replaced it\n",
    }
    for path, text in (more | {"tmp/draft": "nothing of the agent's\n"}).items():
        (own / path).parent.mkdir(parents=True, exist_ok=True)
        (own / path).write_text(text)
    await agents.host.sync(session, SnapshotReason.CATCH_UP)
    for _ in range(2):  # what was put back is stored and put back once more
        await agents.host.remove(session)
        await agents.host.folder(session)
        assert await put_aside(agents, session) == kept | more
        assert not (await agents.folder(session) / ".contextbase" / "notices.md").exists()


async def test_a_link_with_a_name_that_is_no_text_comes_back(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script({"tool": "bash", "input": {"command": "ln -s x .agent_data/$(printf 'n\\377')"}}))
    await agents.host.remove(session)
    await agents.host.folder(session)
    assert (await agents.folder(session) / ".agent_data" / os.fsdecode(b"n\xff")).readlink() == Path("x")


async def test_what_a_program_removes_or_replaces_meanwhile_is_stored_as_it_is_then(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await agents.session(land=Land.NEVER)
    make = "cd .agent_data; ln -s x lock; echo a > gone; echo b > replaced; ln -s x relinked"
    await agents.done(session, script({"tool": "bash", "input": {"command": make}}))
    data = await agents.folder(session) / ".agent_data"
    look = SessionSnapshots._found

    def look_too_early(self: SessionSnapshots, work: Path, scanned: ScanResult) -> list[StateFile]:
        found = look(self, work, scanned)
        for name in ("lock", "gone", "replaced", "relinked"):
            (data / name).unlink(missing_ok=True)
        (data / "replaced").symlink_to("y")
        (data / "relinked").write_text("c\n")
        return found

    monkeypatch.setattr(SessionSnapshots, "_found", look_too_early)
    await agents.host.remove(session)
    await agents.host.folder(session)
    data = await agents.folder(session) / ".agent_data"
    assert {path.name for path in data.iterdir()} & {"lock", "gone"} == set()
    assert (data / "replaced").readlink() == Path("y")
    assert (data / "relinked").read_text() == "c\n"


async def test_a_disk_that_fails_is_told_and_the_next_periodic_snapshot_is_taken(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script({"text": "Here."}))
    tries = asyncio.Queue[None]()

    async def fail(*_: object, **__: object) -> None:
        tries.put_nowait(None)
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(SessionSnapshots, "take", fail)
    storing = asyncio.create_task(snapshot_every(timedelta(milliseconds=1), agents.host, session))
    async with asyncio.timeout(600):
        for _ in range(3):
            await tries.get()
    storing.cancel()
    with suppress(asyncio.CancelledError):
        await storing
    with pytest.raises(OSError, match="Input/output"):
        await agents.host.sync(session, SnapshotReason.CATCH_UP)
    worker = await agents.host.rows.find(session.id)
    assert worker is not None
    assert worker.last_sync_status is SyncStatus.FAILED


async def test_a_session_that_is_deleted_after_its_folder_leaves_nothing_behind(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    await agents.done(session, script({"text": "Here."}))
    await agents.services.agents.workspaces.abandon(session.caller(), session.workspace)
    await agents.services.core.sessions.service.delete(agents.owner, session.id)
    await agents.workers.upkeep.sweep()
    worker = await agents.host.rows.find(session.id)
    assert worker is None or worker.state is WorkerState.DELETED


@pytest.mark.parametrize(
    "in_the_way",
    [
        "ln -s /tmp .contextbase/conflicts",
        "mkdir -p .contextbase/conflicts/d/f/from-session/x",
        "echo > .contextbase/conflicts",
    ],
)
async def test_what_is_put_aside_finds_a_place_whatever_the_agent_has_there(
    agents: AgentWorld, in_the_way: str
) -> None:
    session = await agents.session(land=Land.NEVER)
    command = f"mkdir -p d .contextbase; echo mine > d/f; rm -rf .contextbase/conflicts; {in_the_way}"
    await agents.done(session, script({"tool": "bash", "input": {"command": command}}))
    await agents.host.remove(session)
    await agents.put({"d": b"others\n"})
    await agents.host.folder(session)
    assert (await agents.folder(session) / "d").read_bytes() == b"others\n"
    assert "mine\n" in (await put_aside(agents, session)).values()


async def test_one_worker_in_trouble_does_not_keep_others_from_being_stopped(
    agents: AgentWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second = [await agents.session(land=Land.NEVER) for _ in range(2)]
    for session in (first, second):
        await agents.done(session, script({"text": "Here."}))
    repository, clock = agents.workers.upkeep.repository, agents.workers.upkeep.clock
    async with agents.services.core.database.connection() as connection:
        for session in (first, second):
            await repository.want_worker(connection, session.id, WorkerState.STOPPED, clock.now())
    stop, broken = WorkerHost.stop, min(first.id, second.id)  # the first to be looked after

    async def stop_or_fail(host: WorkerHost, session: AgentSession) -> None:
        if session.id == broken:
            raise UnicodeEncodeError("utf-8", "n\udcff", 1, 2, "surrogates not allowed")
        await stop(host, session)

    monkeypatch.setattr(WorkerHost, "stop", stop_or_fail)
    await agents.workers.upkeep.sweep()
    workers = [await agents.host.rows.find(session.id) for session in (first, second)]
    assert {worker.session_id: worker.state for worker in workers if worker is not None} == {
        session.id: WorkerState.RUNNING if session.id == broken else WorkerState.STOPPED for session in (first, second)
    }
