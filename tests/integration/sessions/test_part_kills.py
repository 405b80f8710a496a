"""Parts that a run needs are killed at every state: the executor, and PostgreSQL. The run goes on or fails with its
reason, and nothing is done, lost or told twice."""

import asyncio
import os
import signal
from collections import Counter
from datetime import timedelta
from functools import partial
from pathlib import Path

import psutil
import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.postgres import database_copy, reachable_folder
from tests.support.require import require_root
from tests.support.scripted_model import script

from contextbase.bootstrap import sessions
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.embedded import EmbeddedPostgres
from contextbase.db.migrations.runner import migrate
from contextbase.errors import DatabaseUnavailable
from contextbase.sessions.model import AgentRun, AgentSession
from contextbase.sessions.queue import QueueLimits
from contextbase.sessions.states import ENDED, RunState

pytestmark = pytest.mark.timeout(1200)

_STATES = (RunState.RESTORING, RunState.LINKING, RunState.PREPARING, RunState.RUNNING, RunState.SYNCING)


async def sent(world: AgentWorld, session: AgentSession) -> AgentRun:
    """Two lines into a file of the session's own, with a while between them."""
    add = {"tool": "bash", "input": {"command": f"echo once >> {session.id}.md"}}
    return await world.send(session, script(add, {"text": "In the middle."}, {"pause": 1}, add, {"text": "Done."}))


async def at_state(world: AgentWorld, run: AgentRun, state: RunState) -> None:
    while True:
        now = await world.services.core.sessions.runs.get(run.id)
        if now.state is state or now.state in ENDED or state in now.phases:
            return
        await asyncio.sleep(0.002)


def executor_of(session: AgentSession) -> int | None:
    """Its process on this machine, known by the home that it sees."""
    for place in Path("/proc").iterdir():
        try:
            is_executor = place.name.isdigit() and b".pyz" in (place / "cmdline").read_bytes()
            if is_executor and str(session.id) in (place / "mountinfo").read_text():
                return int(place.name)
        except OSError:
            continue
    return None


async def started_executor(session: AgentSession) -> int:
    while True:
        if (process := executor_of(session)) is not None:
            return process
        await asyncio.sleep(0.002)


async def assert_whole(world: AgentWorld, session: AgentSession, run: AgentRun) -> None:
    """What was told is told once; what succeeded is in."""
    events = await world.events(session)
    kinds = Counter(event.kind for event in events)
    assert kinds["run.finished"] <= 1
    texts = [event.payload["text"] for event in events if event.kind == "message.done"]
    assert texts == ["In the middle.", "Done."][: len(texts)]
    lines = await world.read(f"{session.id}.md")
    assert lines == (b"once\nonce\n" if run.state is RunState.SUCCEEDED else None)


async def test_a_run_ends_with_its_reason_and_the_session_goes_on_though_its_executor_is_killed(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> None:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data") as world,
    ):
        for state in _STATES:
            session = await world.session()
            run = await sent(world, session)
            await at_state(world, run, state)
            os.kill(await started_executor(session), signal.SIGKILL)
            ended = await world.ended(run)
            assert ended.state in (RunState.SUCCEEDED, RunState.FAILED)
            assert ended.reason in (None, "executor_died"), (state, ended.reason, ended.message)
            await assert_whole(world, session, ended)
            again = await world.done(session, script({"text": "Here I am."}))
            assert again.state is RunState.SUCCEEDED, (state, again.reason, again.message)


async def test_a_run_ends_well_though_postgresql_is_killed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    require_root()
    hour = timedelta(hours=1)  # however slow the machine is, no lease runs out meanwhile
    monkeypatch.setattr(sessions, "QueueLimits", partial(QueueLimits, lease=hour, machine_lost=hour))
    with reachable_folder() as folder:
        server = EmbeddedPostgres(folder / "postgres")
        await server.start()
        try:
            database = await Database.connect(server.address)
            await migrate(database)
            await database.close()
            async with open_agent_world(server.address, tmp_path / "data") as world:
                for state in _STATES:
                    session = await world.session()
                    run = await sent(world, session)
                    await at_state(world, run, state)
                    assert server.process_id is not None
                    psutil.Process(server.process_id).kill()
                    ended = await ended_after_all(world, run)
                    assert ended.state is RunState.SUCCEEDED, (state, ended.reason, ended.message)
                    assert ended.attempt == 1, "its machine goes on with what it holds"
                    await assert_whole(world, session, ended)
        finally:
            await server.stop()


async def ended_after_all(world: AgentWorld, run: AgentRun) -> AgentRun:
    while True:
        try:
            return await world.ended(run)
        except DatabaseUnavailable:
            await asyncio.sleep(0.05)
