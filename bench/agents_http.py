"""A server of our own, and conversations with it over HTTP."""

import json
from collections.abc import AsyncIterator
from datetime import datetime
from typing import Any, Final

import httpx
from tests.support.server import ServerProcess

__all__ = ["PROJECT", "client_of", "ended", "items_of", "new_session", "sent", "words_of"]

PROJECT: Final = "bench"
_LIMITS: Final = httpx.Limits(max_connections=None)


def client_of(server: ServerProcess) -> httpx.AsyncClient:
    token = (server.data / "owner-token").read_text().strip()
    headers = {"Authorization": f"Bearer {token}"}
    return httpx.AsyncClient(base_url=server.url, headers=headers, timeout=600, limits=_LIMITS)


async def new_session(client: httpx.AsyncClient, provider: str = "scripted") -> str:
    made = await client.post("/api/v1/sessions", json={"project": PROJECT, "provider": provider})
    return str(made.raise_for_status().json()["id"])


async def sent(client: httpx.AsyncClient, session: str, message: str) -> str:
    """The run's id."""
    answer = await client.post(f"/api/v1/sessions/{session}/runs", json={"message": message})
    return str(answer.raise_for_status().json()["id"])


async def items_of(client: httpx.AsyncClient, run_id: str) -> AsyncIterator[dict[str, Any]]:
    headers = {"Accept": "text/event-stream"}
    async with client.stream("GET", f"/api/v1/runs/{run_id}/events", headers=headers) as answer:
        async for line in answer.aiter_lines():
            if line.startswith("data: "):
                yield json.loads(line.removeprefix("data: "))


async def words_of(client: httpx.AsyncClient, run_id: str) -> AsyncIterator[float]:
    """When the agent said each, as it comes."""
    async for item in items_of(client, run_id):
        if item.get("kind") == "message.delta":
            yield datetime.fromisoformat(item["payload"]["ts"]).timestamp()


async def ended(client: httpx.AsyncClient, run_id: str) -> dict[str, Any]:
    """The run, when it is over."""
    found: dict[str, Any] = {}
    async for item in items_of(client, run_id):
        found = item
    assert found["run"]["state"] == "succeeded", found
    run: dict[str, Any] = found["run"]
    return run
