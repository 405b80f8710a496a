"""A client of the Messages API, streamed, over plain HTTP to the model's port on loopback."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = ["ModelRefused", "message_events"]

_LONGEST_LINE: Final = 4 << 20
_LONGEST_ERROR: Final = 64 << 10


class ModelRefused(Exception):
    """The answer was not 200."""

    def __init__(self, status: int, message: str, retry_after: float | None) -> None:
        super().__init__(message)
        self.status = status
        self.message = message
        self.retry_after = retry_after


async def message_events(url: str, body: Mapping[str, Any]) -> AsyncGenerator[dict[str, Any], None]:
    """The events of one answer, as they come. `OSError` when the connection breaks, `ModelRefused` otherwise."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=_LONGEST_LINE)
    try:
        content = json.dumps({**body, "stream": True}).encode()
        head = [
            "POST /v1/messages HTTP/1.1",
            f"Host: {where.netloc}",
            "Content-Type: application/json",
            "Accept: text/event-stream",
            "Anthropic-Version: 2023-06-01",
            "X-Api-Key: the-gateway-has-it",
            f"Content-Length: {len(content)}",
            "Connection: close",
        ]
        writer.write("\r\n".join([*head, "", ""]).encode() + content)
        await writer.drain()
        status, headers = await _answer_head(reader)
        async with aclosing(_body(reader, headers)) as pieces:
            if status != 200:
                raise await _refusal(status, headers, pieces)
            async for event in _server_sent(pieces):
                yield event
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def _answer_head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError):
        raise ConnectionResetError("The model's answer was cut off.") from None
    pairs = (line.partition(":") for line in lines[1:] if line)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _body(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
    try:
        if headers.get("transfer-encoding", "").lower() == "chunked":
            while size := int((await reader.readline()).split(b";")[0] or b"-", 16):
                yield await reader.readexactly(size)
                await reader.readexactly(2)
        elif "content-length" in headers:
            left = int(headers["content-length"])
            while left:
                piece = await reader.read(min(left, 1 << 16))
                if not piece:
                    raise ConnectionResetError("The model's answer was cut off.")
                left -= len(piece)
                yield piece
        else:
            while piece := await reader.read(1 << 16):
                yield piece
    except (asyncio.IncompleteReadError, ValueError):
        raise ConnectionResetError("The model's answer was cut off.") from None


async def _refusal(status: int, headers: Mapping[str, str], pieces: AsyncIterator[bytes]) -> ModelRefused:
    said = b""
    async for piece in pieces:
        said += piece
        if len(said) > _LONGEST_ERROR:
            break
    try:
        message = str(json.loads(said)["error"]["message"])
    except (ValueError, KeyError, TypeError, RecursionError):
        message = said[:500].decode(errors="replace")
    after = headers.get("retry-after", "")
    return ModelRefused(status, message, float(after) if after.isdigit() else None)


async def _server_sent(pieces: AsyncIterator[bytes]) -> AsyncIterator[dict[str, Any]]:
    buffer = b""
    async for piece in pieces:
        *lines, buffer = (buffer + piece).split(b"\n")
        if len(buffer) > _LONGEST_LINE:
            raise ConnectionResetError("The model's answer has a line that is too long.")
        for line in lines:
            if line.startswith(b"data:"):
                with contextlib.suppress(ValueError, RecursionError):
                    event = json.loads(line.removeprefix(b"data:"))
                    if isinstance(event, dict):
                        yield event
