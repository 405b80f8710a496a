"""Streams over one connection: who reads slowly slows its own stream alone, and a peer that breaks a rule is cut."""

import asyncio
import contextlib
import itertools
import json
import logging
import time
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from contextbase.channel.errors import ChannelClosed, ProtocolViolation, StreamCut
from contextbase.channel.frames import Frame, FrameDecoder, FrameKind, encoded_frame
from contextbase.channel.stream import ChannelStream

__all__ = ["INSIDE", "SERVER", "ChannelLimits", "Multiplexer"]

_log = logging.getLogger(__name__)

SERVER: Final = 1
"""The number of the first stream that the server opens; its streams are odd."""
INSIDE: Final = 2

_QUEUED: Final = 256 << 10  # bytes that wait to be sent
_PING_NOW: Final = bytes(8)
_HANDLERS_END: Final = 10.0  # seconds that handlers have to end by themselves when the channel is gone


@dataclass(frozen=True, kw_only=True, slots=True)
class ChannelLimits:
    """Both sides must have the same `window`; it is part of the protocol's version."""

    window: int = 256 << 10  # bytes of one stream that may wait to be read
    streams: int = 128  # that each side may have open
    ping: float = 15.0  # seconds between two
    silence: float = 60.0  # seconds without a byte, or with one that the other side does not take: it is gone


class Multiplexer:
    """`opened` is called with each stream that the other side opens, in a task of its own; the stream is cut when it
    raises, and ended when it returns. `first` is SERVER or INSIDE."""

    def __init__(
        self,
        *,
        receive: Callable[[], Awaitable[bytes]],
        send: Callable[[bytes], Awaitable[None]],
        opened: Callable[[ChannelStream], Awaitable[None]],
        first: int,
        rest: bytes = b"",  # what came with the greeting
        limits: ChannelLimits | None = None,
    ) -> None:
        self._receive = receive
        self._send = send
        self._opened = opened
        self._rest = rest
        self._limits = limits or ChannelLimits()
        self._numbers = itertools.count(first, 2)
        self._newest = first - 2  # that we opened
        self._parity = first % 2
        self._newest_of_peer = 0
        self._streams: dict[int, ChannelStream] = {}
        self._slots = asyncio.Semaphore(self._limits.streams)
        self._handlers: set[asyncio.Task[None]] = set()
        self._sending = asyncio.Lock()  # the order of frames is the order of their senders
        self._outgoing = bytearray()
        self._has_outgoing = asyncio.Event()
        self._has_room = asyncio.Event()
        self._heard = time.monotonic()
        self._owed_pong: bytes | None = None
        self._beat = asyncio.Event()
        self._over = asyncio.Event()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    async def wait_until_over(self) -> None:
        await self._over.wait()

    def close(self) -> None:
        """`run` returns soon. Whoever made the connection closes it."""
        self._over.set()

    async def handlers_ended(self) -> None:
        """When the channel is over, its handlers have a while to end by themselves; then they are cancelled."""
        if self._handlers:
            await asyncio.wait(tuple(self._handlers))

    async def open(self, about: Mapping[str, Any]) -> ChannelStream:
        """Waits while as many as allowed are open. `ChannelClosed` when the channel is gone."""
        data = json.dumps(about).encode()
        await self._slots.acquire()
        if self.is_over:
            self._slots.release()
            raise ChannelClosed("The channel is closed.")
        number = self._newest = next(self._numbers)
        stream = self._streams[number] = ChannelStream(self, number, about, window=self._limits.window)
        try:
            await self.send_frame(number, FrameKind.OPEN, data)
        except StreamCut:
            raise ChannelClosed("The channel is closed.") from None
        except BaseException:
            stream.was_cut()  # nobody was told of it
            raise
        return stream

    async def run(self) -> None:
        """Until the other side is gone, or `close`. `ProtocolViolation` when the other side broke a rule."""
        tasks = [asyncio.create_task(each()) for each in (self._read, self._write, self._keep_beating, self._over.wait)]
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            for task in tasks:
                if task.done():
                    task.result()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            self._end()

    async def send_frame(self, stream: int, kind: FrameKind, data: bytes = b"") -> None:
        """Puts it into a short queue: who is cancelled while it waits has sent all of a frame or nothing."""
        async with self._sending:
            while len(self._outgoing) > _QUEUED and not self.is_over:
                self._has_room.clear()
                await self._has_room.wait()
            if self.is_over:
                raise StreamCut("The channel is closed.")
            self._outgoing += encoded_frame(stream, kind, data)
            self._has_outgoing.set()

    def stream_finished(self, stream: ChannelStream) -> None:
        if self._streams.pop(stream.number, None) is not None and stream.number % 2 == self._parity:
            self._slots.release()

    async def _read(self) -> None:
        """Never sends: two sides with full sockets would wait for each other for ever."""
        decoder = FrameDecoder()
        data, self._rest = self._rest, b""
        while data or (data := await self._receive()):
            self._heard = time.monotonic()
            for frame in decoder.feed(data):
                self._take(frame)
            data = b""

    async def _write(self) -> None:
        while True:
            await self._has_outgoing.wait()
            self._has_outgoing.clear()
            data = bytes(self._outgoing)
            self._outgoing.clear()
            self._has_room.set()
            try:
                async with asyncio.timeout(self._limits.silence):
                    await self._send(data)
            except OSError:  # a time-out is one
                return

    def _take(self, frame: Frame) -> None:
        if frame.kind is FrameKind.PING:
            self._owed_pong = frame.data  # the newest alone: floods cost nothing
            self._beat.set()
        elif frame.kind is FrameKind.OPEN:
            self._accept(frame)
        elif frame.kind is not FrameKind.PONG:
            stream = self._streams.get(frame.stream)
            if stream is not None:
                stream.arrived(frame.kind, frame.data)
            elif frame.stream > (self._newest if frame.stream % 2 == self._parity else self._newest_of_peer):
                raise ProtocolViolation(f"Stream {frame.stream} was never opened.")

    def _accept(self, frame: Frame) -> None:
        if frame.stream % 2 == self._parity or frame.stream <= self._newest_of_peer:
            raise ProtocolViolation(f"The other side cannot open stream {frame.stream}.")
        theirs = sum(number % 2 != self._parity for number in self._streams)
        if theirs >= self._limits.streams or len(self._handlers) >= 2 * self._limits.streams:
            raise ProtocolViolation(f"More than {self._limits.streams} streams were opened.")
        try:
            about = json.loads(frame.data)
        except (ValueError, RecursionError):
            about = None
        if not isinstance(about, dict):
            raise ProtocolViolation(f"Stream {frame.stream} was opened with something that is not a JSON object.")
        self._newest_of_peer = frame.stream
        stream = ChannelStream(self, frame.stream, about, window=self._limits.window)
        self._streams[frame.stream] = stream
        task = asyncio.create_task(self._handle(stream))
        self._handlers.add(task)
        task.add_done_callback(self._handlers.discard)

    async def _handle(self, stream: ChannelStream) -> None:
        try:
            await self._opened(stream)
            await stream.end()
            async with asyncio.timeout(self._limits.silence):
                while await stream.read():  # a cut would take from the other side what it has not read yet
                    pass
        except OSError:
            pass  # the stream is gone, or where it led to
        except Exception:  # noqa: BLE001 - its stream is cut; the others go on
            _log.exception("the handler of a stream failed")
        finally:
            await stream.cut()

    async def _keep_beating(self) -> None:
        """Answer pings, send our own, and end it when nothing was heard for too long."""
        while time.monotonic() - self._heard < self._limits.silence:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(self._limits.ping):
                    await self._beat.wait()
            self._beat.clear()
            owed, self._owed_pong = self._owed_pong, None
            try:
                if owed is not None:
                    await self.send_frame(0, FrameKind.PONG, owed)
                else:
                    await self.send_frame(0, FrameKind.PING, _PING_NOW)
            except StreamCut:
                return

    def _end(self) -> None:
        self._over.set()
        self._has_room.set()
        for stream in tuple(self._streams.values()):
            stream.was_cut()
        self._slots.release()  # one after the other: who waits to open a stream is told
        for task in tuple(self._handlers):  # those that do not look at their streams
            asyncio.get_running_loop().call_later(_HANDLERS_END, task.cancel)
