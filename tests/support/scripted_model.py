"""The built-in scripted model behind the gateway, on a real port of this machine, for programs that are real too."""

import asyncio
import json
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from contextbase.identity.model import Principal, PrincipalKind
from contextbase.models.gateway import ModelGateway
from contextbase.models.http_stream import AsgiApp, HttpLimits, serve
from contextbase.models.memory import MemoryLedger
from contextbase.models.model import ModelContext
from contextbase.models.ports import ModelAnswer, ModelRequest, ModelTransport, UsageLedger
from contextbase.models.scripted import ScriptedModel
from contextbase.models.scripted.chat_history import read_history
from contextbase.models.upstreams import ChosenUpstream, FixedUpstreams

__all__ = [
    "RecordedModel",
    "SocketStream",
    "listening",
    "model_context",
    "running_scripted_model",
    "script",
    "scripted_gateway",
]


def script(*steps: dict[str, Any]) -> str:
    """A message for the model."""
    return f"Do as the plan says.\n```script\n{json.dumps(steps)}\n```\n"


def model_context(**values: Any) -> ModelContext:
    owner = Principal(id=uuid4(), kind=PrincipalKind.USER, name="ann")
    given = {"session_id": uuid4(), "run_id": uuid4(), "attempt": 1, "owner": owner, "project_id": uuid4()} | values
    return ModelContext(**given)


class SocketStream:
    """A socket as the stream that a channel would give."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def read(self) -> bytes:
        return await self._reader.read(65536)

    async def write(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def end(self) -> None:
        self._writer.close()


@asynccontextmanager
async def listening(
    app: AsgiApp, state: dict[str, Any] | None = None, *, limits: HttpLimits | None = None
) -> AsyncIterator[str]:
    """The application at an address of this machine; each connection is one stream."""
    tasks = set()

    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        try:
            with suppress(asyncio.CancelledError):  # below: a program still has its connection
                await serve(SocketStream(reader, writer), app, state, limits=limits)
        finally:
            tasks.discard(task)

    server = await asyncio.start_server(connected, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in list(tasks):
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


@dataclass
class RecordedModel:
    """The scripted model, and what it was asked."""

    prompt: str = ""  # that sets it to work
    url: str = ""
    requests: list[ModelRequest] = field(default_factory=list)
    _model: ScriptedModel = field(default_factory=ScriptedModel)

    @asynccontextmanager
    async def open(self, request: ModelRequest) -> AsyncIterator[ModelAnswer]:
        self.requests.append(request)
        async with self._model.open(request) as answer:
            yield answer

    @property
    def offered(self) -> set[str]:
        """Tools."""
        return {name for request in self.requests for name in read_history(request).tools}

    @property
    def answers(self) -> list[str]:
        """Of tools, as the model saw them with the last request that offered any."""
        histories = [history for history in map(read_history, self.requests) if history.tools]
        return histories[-1].results_after(-1) if histories else []


def scripted_gateway(model: ModelTransport, ledger: UsageLedger | None = None) -> ModelGateway:
    upstreams = FixedUpstreams({}, ChosenUpstream(name="scripted", transport=model))
    return ModelGateway(upstreams=upstreams, ledger=ledger or MemoryLedger())


@contextmanager
def running_scripted_model(prompt: str, ledger: UsageLedger | None = None) -> Iterator[RecordedModel]:
    """In a thread of its own, for tests that wait for a program."""
    model = RecordedModel(prompt)
    gateway = scripted_gateway(model, ledger)
    is_ready, loop, ended = threading.Event(), asyncio.new_event_loop(), asyncio.Event()
    context = model_context(main_model="scripted")

    async def main() -> None:
        async with listening(gateway, {"current": lambda: context}) as url:
            model.url = url
            is_ready.set()
            await ended.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(main(),))
    thread.start()
    is_ready.wait()
    try:
        yield model
    finally:
        loop.call_soon_threadsafe(ended.set)
        thread.join()
        loop.close()
