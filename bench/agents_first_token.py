"""The first word of each agent program in a warm session, beside the bare program; and going back in a conversation."""

import asyncio
import json
import statistics
import time
from pathlib import Path
from typing import Final

import httpx
from tests.support.agent_clis import cache_folder, installed
from tests.support.run_world import remove_sandboxes
from tests.support.scripted_model import running_scripted_model, script
from tests.support.server import start_server
from tests.support.workspaces import unmount_all

from bench.agents_http import PROJECT, client_of, ended, items_of, new_session, sent
from bench.bare_program import SPOKEN, BareProgram

__all__ = ["measure_first_token"]

_PROGRAMS: Final = ("claude", "codex", "opencode")
_HELLO: Final = script({"text": "Hello."})
_WRITE: Final = script({"tool": "write", "input": {"path": "plan.md", "content": "# Plan\n"}}, {"text": "Done."})


def measure_first_token(folder: Path, *, rounds: int) -> dict[str, object]:
    for name in _PROGRAMS:
        installed(name)
    folder.mkdir(parents=True, exist_ok=True)
    try:
        return asyncio.run(_measured(folder, rounds))
    finally:
        asyncio.run(remove_sandboxes(folder / "data"))
        unmount_all(folder)


async def _measured(folder: Path, rounds: int) -> dict[str, object]:
    with start_server(folder / "data", CONTEXTBASE_AGENT_FOLDERS=json.dumps([str(cache_folder())])) as server:
        async with client_of(server) as client:
            (await client.post("/api/v1/projects", json={"name": PROJECT})).raise_for_status()
            added = {name: await _added(client, name, folder / "bare" / name, rounds) for name in _PROGRAMS}
            return {"first_token_added_ms": added, "rewind_ms": await _rewind(client, rounds)}


async def _added(client: httpx.AsyncClient, name: str, folder: Path, rounds: int) -> float:
    session = await new_session(client, name)
    await ended(client, await sent(client, session, _HELLO))
    ours, bare = [], []
    with running_scripted_model(_HELLO) as model:
        program = BareProgram(name, folder, model.url, _HELLO)
        await program.first_word()
        for _ in range(rounds):
            bare.append(await program.first_word())
            ours.append(await _first_word(client, session))
        await program.end()
    return round((statistics.median(ours) - statistics.median(bare)) * 1000, 1)


async def _first_word(client: httpx.AsyncClient, session: str) -> float:
    began, taken = time.perf_counter(), 0.0
    async for item in items_of(client, await sent(client, session, _HELLO)):
        if item.get("kind") in SPOKEN and not taken:
            taken = time.perf_counter() - began
    return taken


async def _rewind(client: httpx.AsyncClient, rounds: int) -> float:
    """To the first of two messages, with the files."""
    session, taken = await new_session(client), []
    for _ in range(max(rounds // 3, 2)):
        first = await ended(client, await sent(client, session, _WRITE))
        await ended(client, await sent(client, session, _WRITE))
        began = time.perf_counter()
        asked = {"message_id": first["id"], "files": True}
        (await client.post(f"/api/v1/sessions/{session}/rewind", json=asked)).raise_for_status()
        taken.append(time.perf_counter() - began)
    return round(statistics.median(taken) * 1000, 1)
