"""What runs left in a session's folder lands or is thrown away, also when the folder has to be made again."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.postgres import database_copy
from tests.support.scripted_model import script

from contextbase.db.database import DatabaseAddress
from contextbase.errors import Conflict, NotFound, Unavailable
from contextbase.sessions.model import Land
from contextbase.sessions.states import RunState
from contextbase.vocabulary import LandingState

pytestmark = pytest.mark.timeout(1200)

WRITE = {"tool": "write", "input": {"path": "a.md", "content": "a\n"}}


@pytest.fixture
async def agents(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[AgentWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data") as world,
    ):
        yield world


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
