"""The history of a long run, made of its events."""

import asyncio
import statistics
import time
from pathlib import Path

from tests.support.postgres import embedded_server
from tests.support.session_world import SessionWorld

from contextbase.db.database import Database, DatabaseAddress
from contextbase.db.migrations.runner import migrate
from contextbase.sessions.chats import Chats
from contextbase.sessions.states import RunState

__all__ = ["measure_replay"]

_PARTS = 10  # events of one message, with its tool


def measure_replay(folder: Path, *, events: int, rounds: int) -> dict[str, object]:
    with embedded_server() as address:
        return asyncio.run(_measured(address, folder, events, rounds))


async def _measured(address: DatabaseAddress, folder: Path, events: int, rounds: int) -> dict[str, object]:
    database = await Database.connect(address)
    await migrate(database)
    try:
        async with SessionWorld.opened(database, folder) as world:
            session = await world.session()
            await world.send(session, "Do it.")
            run = await world.walk((await world.claim()).run, RunState.RUNNING)
            for start in range(0, events, 1000):
                await world.log.append(run.id, 1, [_event(n) for n in range(start + 1, min(start + 1000, events) + 1)])
            await world.walk(run, RunState.SUCCEEDED)
            chats, taken = Chats(database=database, sessions=world.sessions, streams=world.streams), []
            for _ in range(rounds):
                began = time.perf_counter()
                page = await chats.messages(world.gate.owner, session.id)
                taken.append(time.perf_counter() - began)
            assert len(page.messages[-1]["parts"]) > events // _PARTS
    finally:
        await database.close()
    return {"replay_10k_events_ms": round(statistics.median(taken) * 1000 * 10_000 / events, 1)}


def _event(n: int) -> dict[str, object]:
    """A message of some words, and a tool."""
    number, at = divmod(n - 1, _PARTS)
    message: dict[str, object] = {"message_id": f"m{number}", "part": 0}
    words = [f"These are the words number {at} of a message. " for at in range(_PARTS - 4)]
    kind, data = "message.delta", message | {"text": words[min(at, len(words) - 1)]}
    if at == _PARTS - 4:
        kind, data = "message.done", message | {"text": "".join(words)}
    elif at == _PARTS - 3:
        kind, data = "message.stop", {"message_id": f"m{number}"}
    elif at == _PARTS - 2:
        tool = {"tool_id": f"t{number}", "name": "bash", "title": "ls", "input": {"command": "ls -l"}}
        kind, data = "tool.start", tool
    elif at == _PARTS - 1:
        kind, data = "tool.end", {"tool_id": f"t{number}", "status": "ok", "output": "a line of output\n" * 10}
    return {"n": n, "type": kind, "ts": "2026-01-01T00:00:00Z", "data": data}
