"""A small HTTP client for servers on loopback: one request a connection, the answer in pieces as they come."""

import asyncio
import contextlib
import json
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

__all__ = ["HttpAnswer", "requested", "server_sent_events"]

_LONGEST_LINE: Final = 32 << 20
_CUT_OFF: Final = "The answer was cut off."


@dataclass(frozen=True, kw_only=True, slots=True)
class HttpAnswer:
    status: int
    headers: Mapping[str, str]  # names in small letters
    pieces: AsyncGenerator[bytes, None]

    async def read(self, longest: int) -> bytes:
        """Its beginning, if it is longer than that."""
        said = b""
        async for piece in self.pieces:
            said += piece
            if len(said) >= longest:
                break
        return said[:longest]


@asynccontextmanager
async def requested(
    url: str, *, method: str = "GET", body: Mapping[str, Any] | None = None, headers: Mapping[str, str] | None = None
) -> AsyncIterator[HttpAnswer]:
    """`OSError` when the connection breaks, also while the answer is read."""
    where = urlsplit(url)
    reader, writer = await asyncio.open_connection(where.hostname, where.port, limit=_LONGEST_LINE)
    try:
        content = b"" if body is None else json.dumps(body).encode()
        about = {"Host": where.netloc, "Content-Length": str(len(content)), "Connection": "close", **(headers or {})}
        if body is not None:
            about["Content-Type"] = "application/json"
        target = f"{where.path or '/'}?{where.query}" if where.query else where.path or "/"
        lines = [f"{method} {target} HTTP/1.1", *(f"{name}: {value}" for name, value in about.items()), "", ""]
        writer.write("\r\n".join(lines).encode() + content)
        await writer.drain()
        status, given = await _head(reader)
        async with aclosing(_pieces(reader, given)) as pieces:
            yield HttpAnswer(status=status, headers=given, pieces=pieces)
    finally:
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()


async def server_sent_events(pieces: AsyncIterator[bytes]) -> AsyncGenerator[dict[str, Any], None]:
    """The objects that are sent; what is not JSON is left out."""
    buffer = bytearray()
    async for piece in pieces:
        buffer += piece
        if b"\n" not in piece:
            if len(buffer) > _LONGEST_LINE:
                raise ConnectionResetError("The answer has a line that is too long.")
            continue
        *lines, rest = bytes(buffer).split(b"\n")
        buffer[:] = rest
        for line in lines:
            if line.startswith(b"data:"):
                with contextlib.suppress(ValueError, RecursionError):
                    event = json.loads(line.removeprefix(b"data:"))
                    if isinstance(event, dict):
                        yield event


async def _head(reader: asyncio.StreamReader) -> tuple[int, dict[str, str]]:
    try:
        lines = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1").split("\r\n")
        status = int(lines[0].split(" ")[1])
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, ValueError, IndexError):
        raise ConnectionResetError(_CUT_OFF) from None
    pairs = (line.partition(":") for line in lines[1:] if line)
    return status, {name.strip().lower(): value.strip() for name, _, value in pairs}


async def _pieces(reader: asyncio.StreamReader, headers: Mapping[str, str]) -> AsyncGenerator[bytes, None]:
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
                    raise ConnectionResetError(_CUT_OFF)
                left -= len(piece)
                yield piece
        else:
            while piece := await reader.read(1 << 16):
                yield piece
    except (asyncio.IncompleteReadError, ValueError):
        raise ConnectionResetError(_CUT_OFF) from None
