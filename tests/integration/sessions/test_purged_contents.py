"""A leaked secret leaves the snapshots of sessions and the files of messages too."""

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from uuid import UUID

import pytest
from tests.support.agent_world import AgentWorld
from tests.support.scripted_model import script

from contextbase.errors import BlobMissing, ContentPurged
from contextbase.history.purge import PurgeAnswer, PurgeWanted
from contextbase.ids import ContentHash, TreePath
from contextbase.sessions.attachments import AttachedFile
from contextbase.sessions.model import AgentSession, Land, RunWishes
from contextbase.sessions.snapshot_model import SessionSnapshot, SnapshotReason
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.sessions.states import RunState

pytestmark = pytest.mark.timeout(1200)

SECRET = b"password = hunter2\n"
WAITING = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"


async def purge(agents: AgentWorld, path: str) -> PurgeAnswer:
    core = agents.services.core
    project = await core.projects.find(agents.owner, str(agents.project_id))
    wanted = PurgeWanted(path=TreePath(path))
    return await core.purge.purge(agents.owner, agents.project_id, wanted, confirm=project.name)


async def purges_told(agents: AgentWorld) -> dict[UUID, list[str]]:
    """The contents that each project's audit trail says were purged."""
    async with agents.services.core.database.connection() as connection:
        rows = await connection.fetch("SELECT chain, details FROM audit WHERE action = 'purge'")
    return {row["chain"]: json.loads(row["details"])["contents"] for row in rows}


async def stored_paths(agents: AgentWorld, session: AgentSession) -> set[bytes]:
    """Those that any snapshot of the session has."""
    async with agents.services.core.database.connection() as connection:
        rows = await connection.fetch(
            "SELECT f.path FROM session_snapshot_files f JOIN session_snapshots s ON s.id = f.snapshot_id "
            "WHERE s.session_id = $1",
            session.id,
        )
    return {row["path"] for row in rows}


async def again(agents: AgentWorld, session: AgentSession) -> Path:
    """The session's folder, made of what is stored."""
    await agents.host.folder(session)
    return await agents.folder(session)


async def with_secret(agents: AgentWorld) -> tuple[AgentSession, SessionSnapshot]:
    """A session that has the secret in its folder, and what is stored of it."""
    session = await agents.session(land=Land.NEVER)
    folder = await again(agents, session)
    (folder / "conf").write_bytes(SECRET)
    await agents.host.sync(session, SnapshotReason.CATCH_UP)
    snapshot = await agents.host.snapshots.newest(session)
    assert snapshot is not None
    return session, snapshot


async def another(agents: AgentWorld, project: str) -> AgentWorld:
    made = await agents.services.core.projects.create(agents.owner, project)
    return replace(agents, project_id=made.id)


async def test_a_snapshot_comes_back_without_the_files_that_had_a_purged_content(agents: AgentWorld) -> None:
    session = await agents.session(land=Land.NEVER)
    folder = await again(agents, session)
    own = folder / ".agent_data"
    own.mkdir(exist_ok=True)
    for path in (folder / "conf", folder / "notes", own / "said.jsonl"):
        path.write_bytes(b"kept\n" if path.name == "notes" else SECRET)
    await agents.host.sync(session, SnapshotReason.CATCH_UP)
    with (own / "said.jsonl").open("ab") as file:
        file.write(b"a piece of its own\n")
    await agents.host.remove(session)
    lost = {b"conf", b".agent_data/said.jsonl"}
    assert await stored_paths(agents, session) >= {*lost, b"notes"}

    await agents.put({"prod.env": SECRET})
    await purge(agents, "prod.env")
    with pytest.raises((BlobMissing, ContentPurged)):
        await agents.services.core.catalog.read(ContentHash.of(SECRET))
    assert not await stored_paths(agents, session) & lost
    folder = await again(agents, session)
    assert (folder / "notes").read_bytes() == b"kept\n"
    assert not any((folder / path.decode()).exists() for path in lost)


async def test_a_run_goes_without_a_file_that_was_purged(agents: AgentWorld) -> None:
    session = await agents.session()
    attachments = agents.services.core.sessions.attachments
    files = [AttachedFile(name=name, media_type="text/plain", content=name.encode()) for name in ("a.txt", "b.txt")]
    wishes = RunWishes(attachments=await attachments.stored(files))
    sent = await agents.services.core.sessions.service.send(
        agents.owner, session.id, script({"text": "Seen."}), wishes=wishes
    )
    run = await agents.ended(sent)
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    await agents.host.remove(session)

    await agents.put({"leaked": b"a.txt"})
    await purge(agents, "leaked")
    with pytest.raises((BlobMissing, ContentPurged)):
        await agents.services.core.catalog.read(ContentHash.of(b"a.txt"))
    await agents.host.folder(session)
    record = await agents.services.agents.workspaces.path(session.caller(), session.workspace)
    placed = await attachments.place(run.id, record, agents.host.owner)
    assert placed == [{"path": "upload/b.txt", "media_type": "text/plain"}]
    assert not (record.path / "upload/a.txt").exists()


async def test_what_only_sessions_have_is_shown_purged_by_its_hash_and_told_in_their_projects(
    agents: AgentWorld,
) -> None:
    session = await agents.session(land=Land.NEVER)
    core = agents.services.core
    attached = await core.sessions.attachments.stored(
        [AttachedFile(name="conf", media_type="text/plain", content=SECRET)]
    )
    wishes = RunWishes(attachments=attached)
    await agents.ended(
        await core.sessions.service.send(agents.owner, session.id, script({"text": "Seen."}), wishes=wishes)
    )
    folder = await again(agents, session)
    (folder / "conf").write_bytes(SECRET)
    for _ in range(2):
        await agents.host.sync(session, SnapshotReason.CATCH_UP)
    await agents.host.remove(session)
    other = await core.projects.create(agents.owner, "other")
    wanted = PurgeWanted(content=ContentHash.of(SECRET))

    shown = await core.purge.preview(agents.owner, other.id, wanted)
    assert (shown.heads, shown.projects, shown.attachments) == ((), (agents.project_id,), 1)
    assert shown.session_files == len({b"conf", b"upload/conf"} & await stored_paths(agents, session))
    await core.purge.purge(agents.owner, other.id, wanted, confirm=other.name)
    assert await purges_told(agents) == {agents.project_id: [str(ContentHash.of(SECRET))]}
    assert b"conf" not in await stored_paths(agents, session)
    with pytest.raises((BlobMissing, ContentPurged)):
        await core.catalog.read(ContentHash.of(SECRET))


async def test_a_project_whose_session_gets_the_content_during_the_purge_is_told_too(agents: AgentWorld) -> None:
    _, snapshot = await with_secret(agents)
    core = agents.services.core
    other = await another(agents, "other")
    third = await another(agents, "third")
    late = await third.session(land=Land.NEVER)
    await other.put({"prod.env": SECRET})
    async with core.database.transaction() as connection:
        await SnapshotRepository().copy(connection, snapshot, late.id, None)
        await connection.execute(
            "UPDATE session_snapshots SET project_id = $1 WHERE session_id = $2", late.project_id, late.id
        )
        purging = asyncio.create_task(purge(other, "prod.env"))
        while not await connection.fetchval(WAITING):
            assert not purging.done()
            await asyncio.sleep(0.01)
    await purging
    assert set(await purges_told(agents)) == {agents.project_id, other.project_id, third.project_id}


async def test_a_session_stored_while_its_content_is_purged_does_not_stop_the_purge(agents: AgentWorld) -> None:
    session, snapshot = await with_secret(agents)
    core = agents.services.core
    other = await another(agents, "other")
    await other.put({"prod.env": SECRET})
    async with core.database.transaction() as connection:
        await SnapshotRepository().copy(connection, snapshot, session.id, None)
        purging = asyncio.create_task(purge(other, "prod.env"))
        while not await connection.fetchval(WAITING):
            assert not purging.done()
            await asyncio.sleep(0.01)
        await connection.execute("DELETE FROM session_snapshots WHERE id = $1", snapshot.id)  # the new one replaces it
    await purging
    assert b"conf" not in await stored_paths(agents, session)


@pytest.mark.parametrize("secret", [SECRET, SECRET * 20_000], ids=["small", "large"])
async def test_a_run_lands_all_but_the_copies_of_a_purged_file(agents: AgentWorld, secret: bytes) -> None:
    await agents.put({"prod.conf": secret, "old.conf": secret})
    session = await agents.session()
    folder = await again(agents, session)
    (folder / "copy.conf").write_bytes(secret)
    (folder / "old.conf").rename(folder / "moved.conf")
    await purge(agents, "prod.conf")
    sent = await agents.send(session, script({"tool": "bash", "input": {"command": "echo new > notes"}}))
    run = await agents.ended(sent)
    assert run.state is RunState.SUCCEEDED, (run.reason, run.message)
    assert run.landed is not None
    assert (run.landed["counts"], run.landed["held_back"]) == ({"written": 1}, 2)
    assert await agents.read("notes") == b"new\n"
    assert {(folder / name).read_bytes() for name in ("copy.conf", "moved.conf")} == {secret}
    assert await agents.read("copy.conf") is None
    assert await agents.read("moved.conf") is None


async def test_a_session_does_not_store_again_what_was_purged(agents: AgentWorld) -> None:
    await agents.put({"prod.conf": SECRET})
    session = await agents.session(land=Land.NEVER)
    folder = await again(agents, session)
    own = folder / ".agent_data"
    own.mkdir(exist_ok=True)
    for path in (folder / "copy.conf", own / "copy"):
        path.write_bytes(SECRET)
    (own / "said").write_bytes(SECRET + b"and more\n")
    await purge(agents, "prod.conf")
    await agents.host.sync(session, SnapshotReason.CATCH_UP)
    assert await stored_paths(agents, session) & {b"copy.conf", b".agent_data/copy", b".agent_data/said"} == {
        b".agent_data/said"
    }
    await agents.host.remove(session)
    folder = await again(agents, session)
    assert (folder / ".agent_data/said").read_bytes() == SECRET + b"and more\n"
    assert not (folder / "copy.conf").exists()
