"""A purge locks several contents in order of their hashes. Whoever begins to refer to them must do so in that order."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import pytest
from tests.support.gate_world import write
from tests.support.session_world import SessionWorld

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.ids import ContentHash, Seq, new_uuid
from contextbase.sessions.model import AgentSession, RunId, RunWishes, StoredAttachment
from contextbase.sessions.snapshot_model import SessionFile, SessionSnapshot, SnapshotId, SnapshotReason, StoredPiece
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.storage.model import Kind
from contextbase.streams.model import EventBody, NewEvent, Scope
from contextbase.streams.repository import StreamRepository
from contextbase.workspaces.repository import WorkspaceRepository

LOW, HIGH = sorted([b"one", b"two"], key=ContentHash.of)
WRONG_ORDER: Final = (ContentHash.of(HIGH), ContentHash.of(LOW))
WAITING: Final = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock' AND datname = current_database()"
LOCK_CONTENTS: Final = load_queries("contextbase.history").lock_contents

Refer = Callable[[SessionWorld, AgentSession, Connection], Awaitable[object]]


async def take_snapshot(_: SessionWorld, session: AgentSession, connection: Connection) -> None:
    taken = SessionSnapshot(
        id=SnapshotId(new_uuid()), session_id=session.id, run_id=None, message_id=None, project_id=session.project_id,
        epoch=new_uuid(), base=Seq(1), reason=SnapshotReason.CATCH_UP, files=2, bytes=6,
    )  # fmt: skip
    files = [
        SessionFile(name=b"%d" % at, kind=Kind.FILE, pieces=(StoredPiece(hash=content, size=3),))
        for at, content in enumerate(WRONG_ORDER)
    ]
    await SnapshotRepository().insert(connection, taken, files)


async def keep_uploads(_: SessionWorld, session: AgentSession, connection: Connection) -> None:
    sizes = dict.fromkeys(WRONG_ORDER, 3)
    await WorkspaceRepository().keep_uploads(connection, session.project_id, session.agent.id, sizes)


async def send_files(world: SessionWorld, session: AgentSession, connection: Connection) -> None:
    files = tuple(
        StoredAttachment(name=f"{at}.txt", media_type="text/plain", size=3, hash=content)
        for at, content in enumerate(WRONG_ORDER)
    )
    await world.repository.insert_run(
        connection, session, RunId(new_uuid()), "", RunWishes(attachments=files), title="", at=world.clock.now()
    )


async def publish(_: SessionWorld, session: AgentSession, connection: Connection) -> None:
    events = [NewEvent(kind="said", payload={}, body=EventBody(hash=content, size=3)) for content in WRONG_ORDER]
    await StreamRepository().append(connection, Scope.session(session.id), events)


@pytest.mark.parametrize("refer", [take_snapshot, keep_uploads, send_files, publish])
async def test_whoever_refers_to_contents_that_are_being_purged_waits_and_holds_none_of_them(
    world: SessionWorld, refer: Refer
) -> None:
    await world.gate.commit(write("a", HIGH, 0), write("b", LOW, 0))
    session = await world.session()

    async def referring() -> None:
        async with world.database.transaction() as connection:
            await refer(world, session, connection)

    async with world.database.transaction() as purging:
        await purging.execute(LOCK_CONTENTS, [ContentHash.of(LOW)])
        task = asyncio.create_task(referring())
        while not await purging.fetchval(WAITING):
            assert not task.done(), await task
            await asyncio.sleep(0.01)
        await purging.execute(LOCK_CONTENTS, [ContentHash.of(HIGH)])  # a deadlock, if the other one has it
    await task
