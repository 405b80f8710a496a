"""A machine is killed in the middle of a run, at every state: the run goes on or fails with its reason, and nothing is
done, lost or told twice."""

import asyncio
import json
import signal
import sys
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.api import url_of
from tests.support.postgres import database_copy
from tests.support.require import require_root
from tests.support.scripted_model import script
from tests.support.workspaces import unmount_all

from contextbase.bootstrap import ProcessRole
from contextbase.db.database import DatabaseAddress
from contextbase.sessions.model import AgentSession
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.states import ENDED, RunState

pytestmark = pytest.mark.timeout(1200)

_KEY = "00" * 32
_STATES = (RunState.RESTORING, RunState.LINKING, RunState.PREPARING, RunState.RUNNING, RunState.SYNCING)


@asynccontextmanager
async def machine(settings: dict[str, Any]) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.agent_machine_worker", json.dumps(settings), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        assert await process.stdout.readline() == b"started\n"
        yield process
    finally:
        if process.returncode is None:
            process.send_signal(signal.SIGTERM)
        await process.wait()


@pytest.fixture
async def site(
    embedded_database_server: DatabaseAddress, tmp_path: Path
) -> AsyncIterator[tuple[AgentWorld, dict[str, Any]]]:
    """A server without a machine, and the settings of one."""
    require_root()
    folder = tmp_path / "machine"
    async with database_copy(embedded_database_server, "contextbase_template") as address:
        settings = {"data": str(folder), "database_url": url_of(address), "audit_key": _KEY}
        try:
            async with open_agent_world(
                address, tmp_path / "server", roles=frozenset({ProcessRole.SERVER}), audit_key=_KEY
            ) as world:
                yield world, settings
        finally:
            unmount_all(folder)


async def at_state(world: AgentWorld, session: AgentSession, state: RunState) -> None:
    """Until the session's run has come to a state, or past it."""
    while True:
        seen = {event.payload.get("state") for event in await world.events(session) if event.kind == "run.state"}
        if state in seen or seen & ENDED:
            return
        await asyncio.sleep(0.005)


async def stored(world: AgentWorld, session: AgentSession, reason: SnapshotReason) -> None:
    """Until a snapshot was begun and stored after now."""
    newer = "SELECT count(*) FROM session_snapshots WHERE session_id = $1 AND reason = $2 AND created_at > $3"
    async with asyncio.timeout(300), world.services.core.database.connection() as connection:
        now = await connection.fetchval("SELECT clock_timestamp()")
        while True:
            if await connection.fetchval(newer, session.id, str(reason), now) >= 2:  # the first may have begun before
                return
            await asyncio.sleep(0.05)


@pytest.mark.parametrize("state", _STATES)
async def test_a_run_ends_well_though_its_machine_is_killed(
    site: tuple[AgentWorld, dict[str, Any]], state: RunState
) -> None:
    world, settings = site
    await world.put({"notes.md": b"# Notes\n"})
    session = await world.session()
    add = {"tool": "bash", "input": {"command": "echo once >> count.md"}}
    run = await world.send(session, script(add, {"text": "In the middle."}, {"pause": 1}, add, {"text": "Done."}))
    async with machine(settings) as process:
        await at_state(world, session, state)
        process.kill()
    async with machine(settings):
        ended = await world.ended(run)
    assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
    assert await world.read("count.md") == b"once\nonce\n"
    kinds = Counter(event.kind for event in await world.events(session))
    assert kinds["run.finished"] == 1
    assert kinds["tool.start"] == kinds["tool.end"] == 2
    messages = [event.payload for event in await world.events(session) if event.kind == "message.done"]
    assert [message["text"] for message in messages] == ["In the middle.", "Done."]


async def test_a_run_that_failed_stays_failed_though_its_machine_is_killed_while_it_stores_that(
    site: tuple[AgentWorld, dict[str, Any]],
) -> None:
    world, settings = site
    settings["agent_run_seconds"] = 2
    session = await world.session()
    run = await world.send(session, script({"tool": "bash", "input": {"command": "echo a > a.md"}}, {"pause": 3000}))
    async with machine(settings) as process:
        await at_state(world, session, RunState.SYNCING)
        process.kill()
    async with machine(settings):
        ended = await world.ended(run)
    assert (ended.state, ended.reason) == (RunState.FAILED, "time_limit")
    assert await world.read("a.md") is None


async def test_a_run_of_a_lost_machine_goes_on_elsewhere_from_its_snapshot(
    site: tuple[AgentWorld, dict[str, Any]], tmp_path: Path
) -> None:
    world, settings = site
    settings["agent_snapshot_minutes"] = 0.005
    session = await world.session()
    async with machine(settings) as process:
        first = await world.send(session, script({"tool": "bash", "input": {"command": "echo a > a.md"}}))
        assert (await world.ended(first)).state is RunState.SUCCEEDED
        half = {"tool": "bash", "input": {"command": "echo half > half.md"}}
        second = await world.send(session, script(half, {"text": "Half done."}, {"pause": 3000}))
        await world.told(session, "tool.end", 2)
        await stored(world, session, SnapshotReason.PERIODIC)
        process.kill()
    await world.forget_machine(first.id)
    elsewhere = {**settings, "data": str(tmp_path / "elsewhere")}
    try:
        async with machine(elsewhere):
            await world.services.core.sessions.service.cancel(world.owner, second.id)
            assert (await world.ended(second)).state is RunState.CANCELED
            third = await world.send(session, script({"tool": "bash", "input": {"command": "cat a.md half.md > b.md"}}))
            ended = await world.ended(third)
    finally:
        unmount_all(tmp_path / "elsewhere")
        async with machine(settings):  # back again, it has a sandbox of its own to remove
            pass
    assert ended.state is RunState.SUCCEEDED, (ended.reason, ended.message)
    assert await world.read("b.md") == b"a\nhalf\n"
