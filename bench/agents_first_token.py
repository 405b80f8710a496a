"""The first word of each agent program in a warm session, beside the bare program; and going back in a conversation."""

import asyncio
import json
import statistics
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final
from uuid import uuid4

import httpx
from tests.support.agent_clis import cache_folder, installed
from tests.support.run_world import remove_sandboxes
from tests.support.scripted_model import running_scripted_model, script
from tests.support.server import start_server
from tests.support.workspaces import unmount_all

from bench.agents_http import PROJECT, client_of, ended, items_of, new_session, sent
from contextbase.agents.model import AgentPlace, AgentQuestion, AgentTurn, SteerMessage
from contextbase.agents.registry import adapter_named, default_model

__all__ = ["measure_first_token"]

_PROGRAMS: Final = ("claude", "codex", "opencode")
_HELLO: Final = script({"text": "Hello."})
_WRITE: Final = script({"tool": "write", "input": {"path": "plan.md", "content": "# Plan\n"}}, {"text": "Done."})
_KEEP_SECONDS: Final = 600.0
_SPOKEN: Final = ("message.delta", "message.done")


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
        program = _BareProgram(name, folder, model.url)
        await program.first_word()
        for _ in range(rounds):
            bare.append(await program.first_word())
            ours.append(await _first_word(client, session))
    return round((statistics.median(ours) - statistics.median(bare)) * 1000, 1)


async def _first_word(client: httpx.AsyncClient, session: str) -> float:
    began, taken = time.perf_counter(), 0.0
    async for item in items_of(client, await sent(client, session, _HELLO)):
        if item.get("kind") in _SPOKEN and not taken:
            taken = time.perf_counter() - began
    return taken


class _BareProgram:
    """The program as its adapter starts it, on the machine itself: no sandbox, executor, channel, gateway or queue."""

    def __init__(self, name: str, folder: Path, model_url: str) -> None:
        found = adapter_named(name)
        assert found is not None
        self._adapter = found
        self._resume: str | None = None
        self._began = 0.0
        self._first: float | None = None
        self.steering: asyncio.Queue[SteerMessage] = asyncio.Queue()
        work, home = folder / "work", folder / "home"
        for one in (work / ".agent_data", home):
            one.mkdir(parents=True, exist_ok=True)
        self._place = AgentPlace(
            workspace=work,
            agent_data=work / ".agent_data",
            home=home,
            model_url=model_url,
            proxy_url="http://127.0.0.1:9",
            mcp_url="http://127.0.0.1:9",
            program_folders=(cache_folder(),),
            environment={"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": str(home), "LANG": "C.UTF-8"},
        )

    async def first_word(self) -> float:
        turn = AgentTurn(
            run_id=str(uuid4()),
            attempt=1,
            provider=self._adapter.name,
            prompt=_HELLO,
            model=default_model(self._adapter.name) or "claude-sonnet-4-5",
            resume=self._resume,
            keep_seconds=_KEEP_SECONDS,  # as ours: both are measured warm
        )
        self._first, self._began = None, time.perf_counter()
        end = await self._adapter.run(turn, self._place, self, asyncio.Event())
        assert self._first is not None, end
        self._resume = end.sdk_session_id
        return self._first

    async def emit(self, kind: str, data: Mapping[str, Any]) -> None:
        del data
        if kind in _SPOKEN and self._first is None:
            self._first = time.perf_counter() - self._began

    async def ask(self, question: AgentQuestion) -> Mapping[str, Any]:
        raise AssertionError(question)


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
