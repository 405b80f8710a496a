"""Many sessions that stream at once, read over HTTP, and a server that is killed under one of them."""

import asyncio
import signal
import time
from pathlib import Path
from typing import Final

import httpx
from tests.support.run_world import remove_sandboxes
from tests.support.scripted_model import script
from tests.support.server import start_server
from tests.support.workspaces import unmount_all

from bench.agents_http import PROJECT, client_of, ended, items_of, new_session, sent, words_of

__all__ = ["measure_streams"]

_HELLO: Final = script({"text": "Hello."})
_PAUSE: Final = 0.25  # seconds between two words


def measure_streams(folder: Path, *, sessions: int, words: int) -> dict[str, object]:
    try:
        return asyncio.run(_measured(folder, sessions, words))
    finally:
        asyncio.run(remove_sandboxes(folder))
        unmount_all(folder)


async def _measured(folder: Path, sessions: int, words: int) -> dict[str, object]:
    with start_server(folder) as server:
        async with client_of(server) as client:
            (await client.post("/api/v1/projects", json={"name": PROJECT})).raise_for_status()
            lags = await _lags(client, sessions, _spoken(words))
            run_id = await sent(client, await new_session(client), _spoken(max(words * 4, 120)))
            await anext(words_of(client, run_id))
        server.stop(signal.SIGKILL)
    with start_server(folder) as server:
        ready = time.time()
        async with client_of(server) as client:
            async for said_at in words_of(client, run_id):
                if said_at > ready:
                    break
            resumed = time.time() - ready
            (await client.post(f"/api/v1/runs/{run_id}/cancel")).raise_for_status()
            async for _ in items_of(client, run_id):
                pass
    return {
        "event_lag_p99_ms": round(lags[len(lags) * 99 // 100] * 1000, 1),
        "event_lag_p50_ms": round(lags[len(lags) // 2] * 1000, 1),
        "events": len(lags),
        "resume_after_restart_ms": round(resumed * 1000, 1),
    }


def _spoken(words: int) -> str:
    """A text, and a pause, again and again: each is a delta of its own."""
    return script(*(step for number in range(words) for step in ({"text": f"Word {number}. "}, {"pause": _PAUSE})))


async def _lags(client: httpx.AsyncClient, count: int, message: str) -> list[float]:
    """Of every word of every session, sorted. All are warm before they speak."""
    sessions = [await new_session(client) for _ in range(count)]
    warm = [await sent(client, session, _HELLO) for session in sessions]
    await asyncio.gather(*(ended(client, run_id) for run_id in warm))
    runs = [await sent(client, session, message) for session in sessions]
    return sorted(lag for lags in await asyncio.gather(*(_read(client, run_id) for run_id in runs)) for lag in lags)


async def _read(client: httpx.AsyncClient, run_id: str) -> list[float]:
    return [time.time() - said_at async for said_at in words_of(client, run_id)]
