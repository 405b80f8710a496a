"""An OpenAI-compatible chat endpoint on a real socket, that says what a test tells it to."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

__all__ = ["ChatServer", "Said", "excerpts", "running_chat_server"]

Stretch = dict[str, str]


@dataclass(frozen=True, kw_only=True)
class Said:
    """An answer: a status and the model's words, or a body that is no chat answer at all."""

    words: str = ""
    status: int = 200
    body: bytes | None = None
    after_seconds: float = 0.0


@dataclass
class ChatServer:
    url: str
    script: Callable[[list[Stretch]], Said]
    requests: list[dict[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)

    @property
    def asked(self) -> str:
        """All that ever left for it."""
        return json.dumps(self.requests)


def excerpts(choose: Callable[[Stretch], str]) -> Callable[[list[Stretch]], Said]:
    """Answers each stretch as it should be: what is chosen, between what was around."""
    return lambda stretches: Said(
        words=json.dumps({"excerpts": [s["before"] + choose(s) + s["after"] for s in stretches]})
    )


@asynccontextmanager
async def running_chat_server(script: Callable[[list[Stretch]], Said]) -> AsyncIterator[ChatServer]:
    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            line, *fields = head.strip().split("\r\n")
            headers = {name.lower(): value.strip() for name, _, value in (field.partition(":") for field in fields)}
            asked = json.loads(await reader.readexactly(int(headers["content-length"])))
            assert line == "POST /v1/chat/completions HTTP/1.1", line
            server.requests.append(asked)
            server.headers.append(headers)
            said = server.script(json.loads(asked["messages"][-1]["content"])["stretches"])
            await asyncio.sleep(said.after_seconds)
            body = said.body
            if body is None:
                body = json.dumps({"choices": [{"message": {"role": "assistant", "content": said.words}}]}).encode()
            writer.write(b"HTTP/1.1 %d X\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (said.status, len(body)))
            writer.write(body)
            await writer.drain()
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # who asked has gone away
        finally:
            writer.close()

    listener = await asyncio.start_server(serve, "127.0.0.1", 0)
    server = ChatServer(url=f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}", script=script)
    try:
        yield server
    finally:
        listener.close()
