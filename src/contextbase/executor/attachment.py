"""The socket that a server attaches to. The newest one wins: the one before it is most likely dead."""

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Final

from contextbase.channel.errors import ProtocolViolation
from contextbase.channel.greeting import Greeting, common_version, received_greeting
from contextbase.channel.multiplexer import INSIDE, Multiplexer
from contextbase.channel.stream import ChannelStream

__all__ = ["Attachments"]

_log = logging.getLogger(__name__)

_GREETING_SECONDS: Final = 10.0
_PIECE: Final = 1 << 18


class Attachments:
    """`about` is what the greeting says of this executor."""

    def __init__(self, about: Callable[[], Mapping[str, Any]]) -> None:
        self._about = about
        self._current: Multiplexer | None = None
        self._came = asyncio.Event()
        self._server: asyncio.Server | None = None

    async def listen(self, socket: Path, opened: Callable[[ChannelStream], Awaitable[None]]) -> None:
        async def attached(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            try:
                await self._serve(reader, writer, opened)
            except (OSError, TimeoutError) as error:
                _log.info("a server is not attached any more: %s", error)
            finally:
                writer.close()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

        socket.unlink(missing_ok=True)  # noqa: ASYNC240 - in memory
        self._server = await asyncio.start_unix_server(attached, socket)
        socket.chmod(0o600)  # noqa: ASYNC240 - in memory

    async def attached(self) -> Multiplexer:
        """The server's channel; waits until there is one."""
        while self._current is None or self._current.is_over:
            self._came.clear()
            await self._came.wait()
        return self._current

    def close(self) -> None:
        if self._server is not None:
            self._server.close()
        if self._current is not None:
            self._current.close()

    async def _serve(
        self,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
        opened: Callable[[ChannelStream], Awaitable[None]],
    ) -> None:
        async def receive() -> bytes:
            return await reader.read(_PIECE)

        async def send(data: bytes) -> None:
            writer.write(data)
            await writer.drain()

        ours = Greeting(about=self._about())
        async with asyncio.timeout(_GREETING_SECONDS):
            theirs, rest = await received_greeting(receive)
            await send(ours.encoded())
        common_version(ours, theirs)
        channel = Multiplexer(receive=receive, send=send, opened=opened, first=INSIDE, rest=rest)
        before, self._current = self._current, channel
        if before is not None:
            before.close()
        self._came.set()
        try:
            await channel.run()
        except ProtocolViolation as error:
            _log.warning("the server broke a rule of the channel: %s", error)
