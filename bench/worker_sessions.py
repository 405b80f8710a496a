"""Sessions on one machine: how soon an agent begins, what a snapshot and a wake cost, and what idle sessions weigh."""

import asyncio
import os
import statistics
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import Final

from tests.support.agent_clis import installed
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.postgres import embedded_server
from tests.support.scripted_model import running_scripted_model, script

from bench.bare_program import SPOKEN, BareProgram
from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import migrate
from contextbase.sandbox.model import Command, SandboxId
from contextbase.sandbox.ports import SandboxDriver
from contextbase.sessions.model import AgentSession
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.streams.access import ReadableScope
from contextbase.streams.model import Position, Scope

__all__ = ["measure_sessions"]

_HELLO: Final = script({"text": "Hello."})
_PATIENCE: Final = 300.0


def measure_sessions(folder: Path, *, rounds: int, sessions: int) -> dict[str, float]:
    with embedded_server() as address:
        return asyncio.run(_measured(address, folder, rounds, sessions))


async def _measured(address: DatabaseAddress, folder: Path, rounds: int, sessions: int) -> dict[str, float]:
    database = await Database.connect(address)
    await migrate(database)
    await database.close()
    options = {"agent_folders": [str(installed("claude").parent)]}
    async with open_agent_world(address, folder, **options) as world:
        figures = await _one_session(world, rounds)
        figures |= await _claude(world, rounds)
        figures |= await _many(world, sessions)
    return figures


async def _one_session(world: AgentWorld, rounds: int) -> dict[str, float]:
    await world.put({f"file-{number}.md": b"text\n" for number in range(100)})
    session = await world.session()
    await world.done(session, _HELLO)
    starts, execs, snapshots, wakes = [], [], [], []
    for _ in range(rounds):
        starts.append(await _until(world, session, "run.status"))
        live = world.host.live(session.id)
        assert live is not None
        execs.append(await _timed(_exec(live.driver, live.sandbox_id)))
        snapshots.append(await _timed(world.host.sync(session, SnapshotReason.PERIODIC)))
    for _ in range(max(rounds // 5, 3)):
        await world.host.stop(session)
        wakes.append(await _until(world, session, "message.done"))
    return {
        "queue_to_first_event_ms": _median(starts),
        "bare_exec_ms": _median(execs),
        "snapshot_ms": _median(snapshots),
        "wake_to_first_token_ms": _median(wakes),
    }


async def _claude(world: AgentWorld, rounds: int) -> dict[str, float]:
    """The first text of Claude Code in a session that is warm, beside the bare program with the same model; and what
    the session's sandbox takes while the program waits for the next message."""
    session = await world.session(provider="claude-code")
    await world.done(session, _HELLO)
    ours, bare = [], []
    with running_scripted_model(_HELLO) as model:
        program = BareProgram("claude", world.host.homes.parent / "bare", model.url, _HELLO)
        await program.first_word()
        for _ in range(max(rounds // 4, 3)):
            bare.append(await program.first_word())
            ours.append(await _until(world, session, *SPOKEN))
        await program.end()
    live = world.host.live(session.id)
    assert live is not None
    idle = await live.driver.stats(live.sandbox_id)
    return {
        "idle_cli_mb": idle.memory / (1 << 20),
        "first_token_ms": _median(ours),
        "bare_first_token_ms": _median(bare),
        "first_token_added_ms": _median(ours) - _median(bare),
    }


async def _many(world: AgentWorld, count: int) -> dict[str, float]:
    before = _server_memory()
    sessions = [await world.session() for _ in range(count)]
    began = time.perf_counter()
    runs = [await world.send(session, _HELLO) for session in sessions]
    for run in runs:
        await world.ended(run)
    seconds = time.perf_counter() - began
    grown = _server_memory() - before
    return {
        "hundred_sessions_s": seconds * 100 / count,
        "idle_session_mb": grown / count / (1 << 20),
    }


async def _until(world: AgentWorld, session: AgentSession, *kinds: str) -> float:
    """Seconds from a message to the first event of a kind that it causes."""
    streams, readable = world.services.core.streams, ReadableScope(scope=Scope.session(session.id))
    position: Position = (await streams.head(readable)).position
    began = time.perf_counter()
    run = await world.send(session, _HELLO)
    async with asyncio.timeout(_PATIENCE), streams.follow(readable) as follower:
        while True:
            page = await follower.read(position)
            position = page.position
            if any(event.kind in kinds for event in page.events):
                seconds = time.perf_counter() - began
                await world.ended(run)
                return seconds
            await follower.wait(position, 5)


async def _exec(driver: SandboxDriver, sandbox_id: SandboxId) -> None:
    await (await driver.exec(sandbox_id, Command(argv=("/bin/true",)))).wait()


async def _timed(work: Awaitable[object]) -> float:
    began = time.perf_counter()
    await work
    return time.perf_counter() - began


def _server_memory() -> int:
    """Bytes of this process that are its own."""
    for line in Path("/proc/self/smaps_rollup").read_text().splitlines():
        if line.startswith("Private_Dirty:"):
            return int(line.split()[1]) * 1024
    return os.sysconf("SC_PAGE_SIZE")


def _median(seconds: list[float]) -> float:
    return statistics.median(seconds) * 1000
