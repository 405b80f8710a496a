"""What the model gateway adds: to the first token, and to fifty streams at once. Service and gateway are processes."""

import asyncio
import contextlib
import json
import multiprocessing
import statistics
import time
from collections.abc import Iterator
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import httpx
import uvloop
from tests.support.scripted_model import listening, model_context

from contextbase.bootstrap import open_services
from contextbase.config import Settings

__all__ = ["measure_gateway"]

BODY = {
    "model": "claude-haiku-4-5",
    "max_tokens": 1000,
    "stream": True,
    "messages": [{"role": "user", "content": "hi"}],
}
START = {"type": "message_start", "message": {"usage": {"input_tokens": 10, "output_tokens": 1}}}
PIECE = {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": "x" * 100}}
END = {"type": "message_delta", "delta": {"stop_reason": "end_turn"}, "usage": {"output_tokens": 100}}


def measure_gateway(folder: Path, *, rounds: int, streams: int, events: int, pause_seconds: float) -> dict[str, float]:
    """With the database, a budget and the log of usage, as a server has them."""
    with (
        _child(_serve_model, events, pause_seconds) as model,
        _child(_serve_gateway, str(folder), model) as gateway,
    ):
        return uvloop.run(_measured(model, gateway, rounds=rounds, streams=streams))


async def _measured(model: str, gateway: str, *, rounds: int, streams: int) -> dict[str, float]:
    async with (
        httpx.AsyncClient(base_url=model, timeout=600) as direct,
        httpx.AsyncClient(base_url=gateway, timeout=600) as through,
    ):
        firsts: dict[httpx.AsyncClient, list[float]] = {direct: [], through: []}
        for number in range(rounds + 5):
            for client, seconds in firsts.items():
                first = await _first_token(client)
                if number >= 5:  # connections and caches are warm
                    seconds.append(first)
        at_once = {}
        for client in firsts:
            began = time.perf_counter()
            await asyncio.gather(*(_whole(client) for _ in range(streams)))
            at_once[client] = time.perf_counter() - began
    first_direct, first_through = (statistics.median(firsts[client]) * 1000 for client in (direct, through))
    return {
        "gateway_added_ms": first_through - first_direct,
        "gateway_first_token_ms": first_through,
        "direct_first_token_ms": first_direct,
        "gateway_streams_ratio": at_once[direct] / at_once[through],
        "gateway_streams_seconds": at_once[through],
        "direct_streams_seconds": at_once[direct],
    }


async def _first_token(client: httpx.AsyncClient) -> float:
    began = time.perf_counter()
    first = None
    async with client.stream("POST", "/v1/messages", json=BODY) as answer:
        async for _ in answer.aiter_raw():
            first = first or time.perf_counter() - began
    assert first is not None
    return first


async def _whole(client: httpx.AsyncClient) -> None:
    async with client.stream("POST", "/v1/messages", json=BODY | {"metadata": {"whole": True}}) as answer:
        assert answer.status_code == 200
        pieces = [piece async for piece in answer.aiter_raw()]
    assert b"end_turn" in b"".join(pieces)


@contextlib.contextmanager
def _child(serve: Any, *arguments: Any) -> Iterator[str]:
    """A process that serves until it is told to stop; its address."""
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe()
    process = context.Process(target=serve, args=(theirs, *arguments))
    process.start()
    try:
        yield ours.recv()
    finally:
        with contextlib.suppress(OSError):
            ours.send("stop")
        process.join()


def _serve_model(connection: Connection, events: int, pause_seconds: float) -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope
        body = b""
        while (message := await receive())["more_body"]:
            body += message["body"]
        is_whole = b'"whole"' in body
        headers = [(b"content-type", b"text/event-stream")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        for document in [START, *([PIECE] * events if is_whole else []), END]:
            data = f"event: {document['type']}\ndata: {json.dumps(document)}\n\n".encode()
            await send({"type": "http.response.body", "body": data, "more_body": True})
            if is_whole:
                await asyncio.sleep(pause_seconds)
        await send({"type": "http.response.body"})

    uvloop.run(_until_told(connection, app, {}))


def _serve_gateway(connection: Connection, folder: str, model: str) -> None:
    async def main() -> None:
        settings = Settings(
            data=Path(folder), model_anthropic_key="bench", model_anthropic_url=model, model_run_budget=1_000_000
        )
        async with open_services(settings) as services:
            secret = await services.core.identity.ensure_owner(None)
            assert secret
            owner = await services.core.identity.authenticate(secret)
            project = await services.core.projects.create(owner, "bench")
            context = model_context(owner=owner.principal, project_id=project.id)
            await _until_told(connection, services.models.gateway, {"current": lambda: context})

    uvloop.run(main())


async def _until_told(connection: Connection, app: Any, state: dict[str, Any]) -> None:
    async with listening(app, state) as url:
        connection.send(url)
        told = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.add_reader(connection.fileno(), told.set)
        await told.wait()
        loop.remove_reader(connection.fileno())
