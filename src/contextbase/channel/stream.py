"""One stream of a channel: bytes both ways, each way with an end of its own."""

import asyncio
import contextlib
import struct
from collections.abc import Mapping
from typing import Any, Final, Protocol

from contextbase.channel.errors import ProtocolViolation, StreamCut
from contextbase.channel.frames import LONGEST_FRAME, FrameKind

__all__ = ["ChannelStream", "FrameSender"]

_CREDIT: Final = struct.Struct(">I")
_MOST_CREDIT: Final = 1 << 31


class FrameSender(Protocol):
    async def send_frame(self, stream: int, kind: FrameKind, data: bytes = b"") -> None:
        """Waits while the other side does not read. `StreamCut` when the channel is gone."""
        ...

    def stream_finished(self, stream: "ChannelStream") -> None: ...


class ChannelStream:
    """`about` is what the side that opened it said. Reading gives credit, arrival does not: a reader that is slow
    slows its writer down, and at most `window` bytes wait here."""

    def __init__(self, sender: FrameSender, number: int, about: Mapping[str, Any], *, window: int) -> None:
        self.number = number
        self.about = about
        self._sender = sender
        self._window = window
        self._inbox = bytearray()
        self._expected = window  # bytes that the other side may still send
        self._taken = 0  # bytes that were read and not given back as credit yet
        self._room = window  # bytes that we may send
        self._moved = asyncio.Event()
        self._readable = asyncio.Event()
        self._cut = asyncio.Event()
        self._has_peer_ended = False
        self._has_ended = False

    @property
    def is_cut(self) -> bool:
        return self._cut.is_set()

    async def wait_until_cut(self) -> None:
        await self._cut.wait()

    async def read(self, most: int = LONGEST_FRAME) -> bytes:
        """The next bytes; empty at the end. `StreamCut` when it was cut."""
        while not self._inbox:
            self._check()
            if self._has_peer_ended:
                return b""
            self._readable.clear()
            await self._readable.wait()
        return await self._take(min(most, len(self._inbox)))

    async def read_line(self, longest: int) -> bytes:
        """With its newline; without one at the end. `ProtocolViolation` for one that is longer than that, which must
        fit into the window."""
        if longest >= self._window:
            raise ValueError(f"A line of {longest} bytes would never be whole in a window of {self._window}.")
        looked_at = 0
        while (found := self._inbox.find(b"\n", looked_at)) < 0 and len(self._inbox) <= longest:
            looked_at = len(self._inbox)
            self._check()
            if self._has_peer_ended:
                return await self._take(len(self._inbox))
            self._readable.clear()
            await self._readable.wait()
        if found < 0 or found >= longest:
            raise ProtocolViolation(f"A line of stream {self.number} is longer than {longest} bytes.")
        return await self._take(found + 1)

    async def read_all(self, most: int) -> bytes:
        """To the end. `ProtocolViolation` for more than `most` bytes."""
        pieces = bytearray()
        while piece := await self.read():
            pieces += piece
            if len(pieces) > most:
                raise ProtocolViolation(f"Stream {self.number} has more than {most} bytes.")
        return bytes(pieces)

    async def write(self, data: bytes) -> None:
        """Waits while the other side does not read. `StreamCut` when it was cut."""
        at = 0
        while at < len(data):
            while self._room == 0 and not self.is_cut:
                self._moved.clear()
                await self._moved.wait()
            self._check()
            piece = data[at : at + min(self._room, LONGEST_FRAME)]
            self._room -= len(piece)
            at += len(piece)
            await self._sender.send_frame(self.number, FrameKind.DATA, piece)

    async def end(self) -> None:
        """The other side reads the end; what it sends still arrives. Harmless when it was ended or cut before."""
        if self._has_ended or self.is_cut:
            return
        self._has_ended = True
        await self._sender.send_frame(self.number, FrameKind.END)
        self._finish()

    async def cut(self) -> None:
        """At once, both ways. Harmless when it is over."""
        if self.is_cut or (self._has_ended and self._has_peer_ended):
            return
        self.was_cut()
        with contextlib.suppress(StreamCut):  # with its whole channel
            await self._sender.send_frame(self.number, FrameKind.CUT)

    def was_cut(self) -> None:
        self._inbox.clear()
        for event in (self._cut, self._moved, self._readable):
            event.set()
        self._sender.stream_finished(self)

    def arrived(self, kind: FrameKind, data: bytes) -> None:
        """A frame of this stream. Never waits: the reader of a channel must not."""
        if kind is FrameKind.DATA:
            if self._has_peer_ended or len(data) > self._expected:
                raise ProtocolViolation(f"Stream {self.number} got more data than it may have.")
            self._expected -= len(data)
            self._inbox += data
            self._readable.set()
        elif kind is FrameKind.END:
            if self._has_peer_ended:
                raise ProtocolViolation(f"Stream {self.number} was ended twice.")
            self._has_peer_ended = True
            self._readable.set()
            self._finish()
        elif kind is FrameKind.CREDIT:
            self._room += _CREDIT.unpack(data)[0]
            if self._room > _MOST_CREDIT:
                raise ProtocolViolation(f"Stream {self.number} got more credit than was used.")
            self._moved.set()
        elif kind is FrameKind.CUT:
            self.was_cut()

    async def _take(self, size: int) -> bytes:
        data = bytes(self._inbox[:size])
        del self._inbox[:size]
        self._taken += size
        if self._taken >= self._window // 2 and not (self._has_peer_ended or self.is_cut):
            taken, self._taken = self._taken, 0
            self._expected += taken
            await self._sender.send_frame(self.number, FrameKind.CREDIT, _CREDIT.pack(taken))
        return data

    def _check(self) -> None:
        if self.is_cut:
            raise StreamCut(f"Stream {self.number} was cut.")

    def _finish(self) -> None:
        if self._has_ended and self._has_peer_ended:
            self._sender.stream_finished(self)
