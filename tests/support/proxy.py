"""A TCP relay that misbehaves on demand, between a client and a real server."""

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

__all__ = ["Misbehaviour", "misbehaving_proxy"]


@dataclass(kw_only=True)
class Misbehaviour:
    alter_request: Callable[[bytes], bytes] = bytes
    cut_answers_after: int | None = None  # bytes, in each connection
    cuts_left: int = 1_000_000
    may_answer: asyncio.Event | None = None  # while it is not set, the server seems to hang


@asynccontextmanager
async def misbehaving_proxy(target: str, misbehaviour: Misbehaviour) -> AsyncIterator[str]:
    """The address of a relay to `target`, until the block ends."""
    address = urlsplit(target)
    connections: set[asyncio.Task[None]] = set()

    async def relay(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        connections.add(task)
        upstream_reader, upstream_writer = await asyncio.open_connection(address.hostname, address.port)
        up = asyncio.create_task(_send_up(reader, upstream_writer, misbehaviour))
        try:
            await _send_down(upstream_reader, writer, misbehaviour)
        finally:
            up.cancel()
            for end in (upstream_writer, writer):
                end.close()
                with suppress(ConnectionError):
                    await end.wait_closed()
            await asyncio.gather(up, return_exceptions=True)
            connections.discard(task)

    server = await asyncio.start_server(relay, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()
        for task in tuple(connections):
            task.cancel()
        await asyncio.gather(*connections, return_exceptions=True)


async def _send_up(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, misbehaviour: Misbehaviour) -> None:
    while data := await reader.read(65536):
        writer.write(misbehaviour.alter_request(data))
        await writer.drain()
    writer.write_eof()


async def _send_down(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, misbehaviour: Misbehaviour) -> None:
    sent = 0
    while data := await reader.read(65536):
        if misbehaviour.may_answer is not None:
            await misbehaviour.may_answer.wait()
        limit = misbehaviour.cut_answers_after
        if limit is not None and misbehaviour.cuts_left > 0 and sent + len(data) > limit:
            writer.write(data[: limit - sent])
            misbehaviour.cuts_left -= 1
            return
        sent += len(data)
        writer.write(data)
        await writer.drain()
