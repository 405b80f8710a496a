"""A shell in a session's sandbox. It goes on without anybody who looks at it, and keeps the last that it has shown."""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final

from contextbase.channel.errors import ChannelClosed, StreamCut
from contextbase.channel.stream import ChannelStream
from contextbase.errors import Conflict
from contextbase.sandbox.model import TerminalSize
from contextbase.sessions.terminal_queries import without_queries

__all__ = ["SCROLL_BACK", "SessionShell", "ShellReader"]

SCROLL_BACK: Final = 256 << 10
"""Bytes of its output that are kept for whoever comes back."""

_BEHIND: Final = SCROLL_BACK // 2  # bytes that a reader may be late; then the shell waits


@dataclass(kw_only=True, eq=False, slots=True)
class ShellReader:
    at: int  # how much of all that was ever shown it has, `earlier` included
    earlier: bytes  # what was shown before it came

    @property
    def replayed(self) -> int:
        return len(self.earlier)


@dataclass(kw_only=True, eq=False, slots=True)
class SessionShell:
    """`ended` says why it is over, and is empty for a shell that ended by itself."""

    stream: ChannelStream
    set_size: Callable[[TerminalSize], Awaitable[object]]
    ended: str | None = None
    was_typed: bool = False  # since somebody last asked and took it back
    _kept: bytearray = field(default_factory=bytearray, init=False)
    _end: int = field(default=0, init=False)  # bytes that it has shown in all
    _readers: set[ShellReader] = field(default_factory=set, init=False)
    _changed: asyncio.Event = field(default_factory=asyncio.Event, init=False)

    @property
    def is_watched(self) -> bool:
        return bool(self._readers)

    async def run(self) -> None:
        """Take in what it shows, to its end. A reader that is slow slows it down: nothing is lost on the way."""
        try:
            while piece := await self.stream.read():
                self._kept += piece
                self._end += len(piece)
                # One may be a piece later now than it may be.
                most = max(SCROLL_BACK, *(self._end - reader.at for reader in self._readers), 0)
                del self._kept[: max(0, len(self._kept) - most)]
                self._tell()
                while any(self._end - reader.at > _BEHIND for reader in self._readers):
                    await self._changed.wait()
            self.ended = self.ended or ""
        except (StreamCut, ChannelClosed):
            self.ended = self.ended or "The sandbox stopped, or lost its connection."
        finally:
            if self.ended is None:
                self.ended = "The server stops."
            self._tell()
            await self.stream.cut()

    def reader(self) -> ShellReader:
        """From the first whole line that is kept, without what a terminal would answer to once more."""
        skipped = self._kept.find(b"\n") + 1 if self._end > len(self._kept) else 0
        reader = ShellReader(at=self._end, earlier=without_queries(bytes(self._kept[skipped:])))
        self._readers.add(reader)
        return reader

    async def output(self, reader: ShellReader) -> AsyncGenerator[bytes, None]:
        """What it has shown and then what it shows, to its end."""
        try:
            if reader.earlier:
                yield reader.earlier
            while True:
                if reader.at < self._end:
                    piece = bytes(self._kept[reader.at - self._end :])
                    yield piece
                    reader.at += len(piece)
                    self._tell()
                elif self.ended is not None:
                    return
                else:
                    await self._changed.wait()
        finally:
            self.leave(reader)

    def leave(self, reader: ShellReader) -> None:
        self._readers.discard(reader)
        self._tell()

    async def write(self, data: bytes) -> None:
        """What somebody types. `Conflict` when the shell has ended."""
        self.was_typed = True
        try:
            await self.stream.write(data)
        except (StreamCut, ChannelClosed) as error:
            raise Conflict("The shell has ended.") from error

    async def end_input(self) -> None:
        """A terminal has no end of its input."""

    async def resize(self, size: TerminalSize) -> None:
        """Harmless after the end."""
        if self.ended is None:
            await self.set_size(size)

    async def end(self, why: str) -> None:
        """The shell inside is told that its terminal is gone. Harmless after the end."""
        if self.ended is None:
            self.ended = why
            await self.stream.cut()

    def _tell(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
