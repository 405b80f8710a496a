"""Two ends of a channel in one process, over a pair of sockets."""

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from contextbase.channel.multiplexer import INSIDE, SERVER, ChannelLimits, Multiplexer
from contextbase.channel.stream import ChannelStream

__all__ = ["Opened", "RawPeer", "channel_pair", "raw_peer"]

Opened = Callable[[ChannelStream], Awaitable[None]]
_PIECE = 1 << 16


async def _cut(stream: ChannelStream) -> None:
    await stream.cut()


def _ends(one: socket.socket) -> tuple[Callable[[], Awaitable[bytes]], Callable[[bytes], Awaitable[None]]]:
    one.setblocking(False)
    loop = asyncio.get_running_loop()

    async def receive() -> bytes:
        return await loop.sock_recv(one, _PIECE)

    async def send(data: bytes) -> None:
        await loop.sock_sendall(one, data)

    return receive, send


async def _run(channel: Multiplexer, one: socket.socket) -> None:
    try:
        await channel.run()
    finally:
        with contextlib.suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)


@asynccontextmanager
async def channel_pair(
    *, server: Opened = _cut, inside: Opened = _cut, limits: ChannelLimits | None = None
) -> AsyncIterator[tuple[Multiplexer, Multiplexer]]:
    """The server's end and the one inside, both at work."""
    sockets = socket.socketpair()
    channels = []
    for one, opened, first in zip(sockets, (server, inside), (SERVER, INSIDE), strict=True):
        receive, send = _ends(one)
        channels.append(Multiplexer(receive=receive, send=send, opened=opened, first=first, limits=limits))
    running = [asyncio.create_task(_run(*each)) for each in zip(channels, sockets, strict=True)]
    try:
        yield channels[0], channels[1]
    finally:
        for channel in channels:
            channel.close()
        await asyncio.gather(*running, return_exceptions=True)
        for one in sockets:
            one.close()


@dataclass
class RawPeer:
    """One end, and the bare socket that is its other side."""

    channel: Multiplexer
    running: "asyncio.Task[None]"
    socket: socket.socket

    async def send(self, data: bytes) -> None:
        await asyncio.get_running_loop().sock_sendall(self.socket, data)


@asynccontextmanager
async def raw_peer(opened: Opened = _cut, limits: ChannelLimits | None = None) -> AsyncIterator[RawPeer]:
    ours, theirs = socket.socketpair()
    theirs.setblocking(False)
    receive, send = _ends(ours)
    channel = Multiplexer(receive=receive, send=send, opened=opened, first=SERVER, limits=limits)
    running = asyncio.create_task(_run(channel, ours))
    try:
        yield RawPeer(channel, running, theirs)
    finally:
        channel.close()
        await asyncio.gather(running, return_exceptions=True)
        ours.close()
        theirs.close()
