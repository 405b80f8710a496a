"""Frames: 9 bytes that say stream, kind and length, and then as many bytes."""

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Final

from contextbase.channel.errors import ProtocolViolation

__all__ = ["LONGEST_FRAME", "Frame", "FrameDecoder", "FrameKind", "encoded_frame"]

_HEAD: Final = struct.Struct(">IBI")

LONGEST_FRAME: Final = 1 << 16
"""Bytes after the head."""


class FrameKind(IntEnum):
    OPEN = 0  # a new stream; JSON about it
    DATA = 1
    END = 2  # no more data this way
    CUT = 3  # nothing more either way, at once
    CREDIT = 4  # this many bytes were read, and may be sent again
    PING = 5
    PONG = 6


_LONGEST: Final = {
    FrameKind.OPEN: 1 << 14,
    FrameKind.DATA: LONGEST_FRAME,
    FrameKind.END: 0,
    FrameKind.CUT: 0,
    FrameKind.CREDIT: 4,
    FrameKind.PING: 8,
    FrameKind.PONG: 8,
}
_SHORTEST: Final = {FrameKind.OPEN: 2, FrameKind.DATA: 1, FrameKind.CREDIT: 4, FrameKind.PING: 8, FrameKind.PONG: 8}
_OF_THE_CHANNEL: Final = (FrameKind.PING, FrameKind.PONG)


@dataclass(frozen=True, kw_only=True, slots=True)
class Frame:
    stream: int  # 0: the channel itself
    kind: FrameKind
    data: bytes


def encoded_frame(stream: int, kind: FrameKind, data: bytes = b"") -> bytes:
    return _HEAD.pack(stream, kind, len(data)) + data


class FrameDecoder:
    """Bytes in, whole frames out. It never holds more than one frame that is not whole, and what it was just given."""

    def __init__(self) -> None:
        self._buffer = bytearray()

    @property
    def pending(self) -> int:
        return len(self._buffer)

    def feed(self, data: bytes) -> Iterator[Frame]:
        """`ProtocolViolation` for a frame that no peer of ours sends, before its bytes are there."""
        self._buffer += data
        at = 0
        try:
            while len(self._buffer) - at >= _HEAD.size:
                stream, kind, length = self._head(at)
                end = at + _HEAD.size + length
                if len(self._buffer) < end:
                    return
                frame = Frame(stream=stream, kind=kind, data=bytes(self._buffer[at + _HEAD.size : end]))
                at = end
                yield frame
        finally:
            del self._buffer[:at]

    def _head(self, at: int) -> tuple[int, FrameKind, int]:
        stream, number, length = _HEAD.unpack_from(self._buffer, at)
        try:
            kind = FrameKind(number)
        except ValueError:
            raise ProtocolViolation(f"There is no frame of kind {number}.") from None
        if not _SHORTEST.get(kind, 0) <= length <= _LONGEST[kind]:
            raise ProtocolViolation(f"A frame of kind {kind.name} does not have {length} bytes.")
        if (stream == 0) != (kind in _OF_THE_CHANNEL):
            raise ProtocolViolation(f"A frame of kind {kind.name} does not belong to stream {stream}.")
        return stream, kind, length
