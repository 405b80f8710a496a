"""Many sessions that stream at once, read over HTTP, and a server that is killed under one of them."""

import asyncio
import signal
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
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
            lags = await _lags(client, sessions, words)
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
    return lags.figures() | {
        "resume_after_restart_ms": round(resumed * 1000, 1),
    }


def _spoken(words: int) -> str:
    """A text, and a pause, again and again: each is a delta of its own."""
    return script(*(step for number in range(words) for step in ({"text": f"Word {number}. "}, {"pause": _PAUSE})))


@dataclass(frozen=True, kw_only=True, slots=True)
class _Lags:
    """How long words took to their readers, in seconds, sorted."""

    together: list[float]  # said while all sessions spoke
    starting: list[float]  # said while others were still being started, or had ended

    def figures(self) -> dict[str, object]:
        return {
            "event_lag_p99_ms": _percentile(self.together, 99),
            "event_lag_p50_ms": _percentile(self.together, 50),
            "events": len(self.together),
            "starting_event_lag_p99_ms": _percentile(self.starting, 99),
        }


def _percentile(seconds: Sequence[float], percent: int) -> float | None:
    return round(seconds[len(seconds) * percent // 100] * 1000, 1) if seconds else None


async def _lags(client: httpx.AsyncClient, count: int, words: int) -> _Lags:
    """Of every word of every session. All are warm before they speak."""
    message = _spoken(words)
    sessions = [await new_session(client) for _ in range(count)]
    warm = [await sent(client, session, _HELLO) for session in sessions]
    await asyncio.gather(*(ended(client, run_id) for run_id in warm))
    runs = [await sent(client, session, message) for session in sessions]
    heard = await asyncio.gather(*(_heard(client, run_id) for run_id in runs))
    begin, end = max(words[0][0] for words in heard), min(words[-1][0] for words in heard)
    if begin >= end:
        print("The first session ended before the last one spoke; have them say more --words.", file=sys.stderr)
    every = [word for words in heard for word in words]
    return _Lags(
        together=sorted(lag for said_at, lag in every if begin <= said_at <= end),
        starting=sorted(lag for said_at, lag in every if not begin <= said_at <= end),
    )


async def _heard(client: httpx.AsyncClient, run_id: str) -> list[tuple[float, float]]:
    """When each word was said, and how long it took to here."""
    return [(said_at, time.time() - said_at) async for said_at in words_of(client, run_id)]
