"""Ports on loopback for the agent's programs. Each connection becomes a stream to the server; while no server is
attached it waits, because programs count refused connections and give up."""

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import Final

from contextbase.channel.errors import ChannelClosed
from contextbase.channel.splice import splice
from contextbase.channel.stream import ChannelStream
from contextbase.executor.attachment import Attachments

__all__ = ["KINDS", "LoopbackPorts"]

KINDS: Final = ("model", "proxy", "mcp")

_LONGEST_WAIT: Final = 600.0  # seconds without a server
_MOST_CONNECTIONS: Final = 256  # of one port


class LoopbackPorts:
    def __init__(self, attachments: Attachments, *, longest_wait: float = _LONGEST_WAIT) -> None:
        self._attachments = attachments
        self._longest_wait = longest_wait
        self._servers: dict[str, asyncio.Server] = {}
        self._connections = {kind: asyncio.Semaphore(_MOST_CONNECTIONS) for kind in KINDS}

    async def open(self) -> None:
        """`OSError` when the sandbox has no loopback."""
        for kind in KINDS:
            self._servers[kind] = await asyncio.start_server(self._handler(kind), "127.0.0.1", 0)

    def url(self, kind: str) -> str:
        port = self._servers[kind].sockets[0].getsockname()[1]
        return f"http://127.0.0.1:{port}"

    def close(self) -> None:
        for server in self._servers.values():
            server.close()

    def _handler(self, kind: str) -> Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]:
        async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                async with self._connections[kind]:
                    try:
                        async with asyncio.timeout(self._longest_wait):
                            stream = await self._stream(kind)
                    except TimeoutError:
                        writer.transport.abort()
                        return
                    await splice(stream, reader, writer)

        return connected

    async def _stream(self, kind: str) -> ChannelStream:
        while True:
            channel = await self._attachments.attached()
            with contextlib.suppress(ChannelClosed):
                return await channel.open({"kind": kind})
            await asyncio.sleep(0)
