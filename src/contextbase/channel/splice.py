"""A stream of a channel and a socket, joined."""

import asyncio
import contextlib

from contextbase.channel.frames import LONGEST_FRAME
from contextbase.channel.stream import ChannelStream

__all__ = ["splice"]


async def splice(stream: ChannelStream, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Carry bytes both ways until both ended; when one side breaks, the other one is broken at once. Closes both."""

    async def out() -> None:
        while data := await reader.read(LONGEST_FRAME):
            await stream.write(data)
        await stream.end()

    async def back() -> None:
        while data := await stream.read():
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()

    ways = [asyncio.create_task(out()), asyncio.create_task(back())]
    try:
        await asyncio.gather(*ways)
    except OSError:
        writer.transport.abort()
    finally:
        for way in ways:
            way.cancel()
        await asyncio.gather(*ways, return_exceptions=True)
        await stream.cut()
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
