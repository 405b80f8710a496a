"""A command that the launcher runs, as its caller sees it."""

import array
import asyncio
import contextlib
import fcntl
import os
import struct
import termios
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Final

from contextbase.errors import Conflict
from contextbase.limits import Limit
from contextbase.sandbox.descriptors import Descriptor, one_of, read_piece, write_all
from contextbase.sandbox.model import CommandOutcome, Output, OutputStream, TerminalSize
from contextbase.sandbox.native.launcher.client import Conversation

__all__ = ["Ended", "LaunchedExecution", "Streams"]

_END_OF_INPUT: Final = b"\x04\x04"  # once for what stands in the line, once for the end
_KILLED: Final = 9
_TERMINAL_REST: Final = 1 << 20
"""What is read of a terminal after the end, at most: how much waits there cannot be asked for."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Streams:
    """Our ends, and those that go to the command: standard input, output and error."""

    stdin: Descriptor | None
    outputs: Mapping[Descriptor, OutputStream]
    is_terminal: bool
    theirs: tuple[int, ...]

    @classmethod
    def pipes(cls, *, has_input: bool) -> "Streams":
        source, stdin = os.pipe() if has_input else (os.open(os.devnull, os.O_RDONLY), None)
        stdout, stdout_end = os.pipe()
        stderr, stderr_end = os.pipe()
        return cls(
            stdin=None if stdin is None else Descriptor(stdin),
            outputs={Descriptor(stdout): OutputStream.STDOUT, Descriptor(stderr): OutputStream.STDERR},
            is_terminal=False,
            theirs=(source, stdout_end, stderr_end),
        )

    @classmethod
    def terminal(cls, ours: int, *, has_input: bool) -> "Streams":
        """With our side of one, which was made inside."""
        master = Descriptor(ours)
        if not has_input:
            os.write(ours, _END_OF_INPUT)
        return cls(
            stdin=master if has_input else None, outputs={master: OutputStream.STDOUT}, is_terminal=True, theirs=()
        )

    def close(self) -> None:
        for descriptor in (*self.outputs, *(() if self.stdin is None else (self.stdin,))):
            descriptor.close()


@dataclass(frozen=True, kw_only=True, slots=True)
class Ended:
    """What the launcher says of the end; `status` as of `waitpid`."""

    is_told: bool  # False: whoever was to tell it was killed
    status: int
    cpu_seconds: float | None
    peak_memory: int | None
    stopped_by: Limit | None
    is_killed: bool  # by us, with all that it started
    seconds: float

    @property
    def exit_code(self) -> int | None:
        return os.WEXITSTATUS(self.status) if os.WIFEXITED(self.status) else None

    @property
    def signal(self) -> int | None:
        return os.WTERMSIG(self.status) if os.WIFSIGNALED(self.status) else None


class LaunchedExecution:
    """`longest`: the seconds it may take. `finish` is called once, when it has ended, and gives the outcome."""

    def __init__(
        self,
        conversation: Conversation,
        streams: Streams,
        *,
        max_output: int | None,
        longest: float | None,
        finish: Callable[[Ended], Awaitable[CommandOutcome]],
    ) -> None:
        self._conversation = conversation
        self._streams = streams
        self._room = max_output
        self._finish = finish
        self._started = time.monotonic()
        self._stopped_by: Limit | None = None
        self._is_killed = False
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._open = dict(streams.outputs)
        self._left: dict[Descriptor, int] | None = None  # bytes to read after the end
        self._has_reader = False
        self._waiting = 0
        self._draining: asyncio.Task[None] | None = None
        self._outcome = asyncio.create_task(self._follow(longest))

    async def output(self) -> AsyncIterator[Output]:
        if self._has_reader:
            raise Conflict("Somebody reads this command's output already.")
        self._has_reader = True
        try:
            await self._stop_draining()
            async for output in self._read():
                yield output
        finally:
            self._has_reader = False
            self._drain_for_who_waits()

    async def write(self, data: bytes) -> None:
        stdin = self._streams.stdin
        if stdin is None:
            raise Conflict("This command has no input.")
        if not stdin.is_open or not await write_all(stdin.fileno(), data, done=self._ended):
            raise Conflict("The command does not read its input any more.")

    async def end_input(self) -> None:
        stdin = self._streams.stdin
        if stdin is None or not stdin.is_open:
            return
        if self._streams.is_terminal:
            await write_all(stdin.fileno(), _END_OF_INPUT, done=self._ended)
        else:
            stdin.close()

    async def resize(self, size: TerminalSize) -> None:
        if not self._streams.is_terminal:
            raise Conflict("This command has no terminal.")
        for descriptor in self._open:
            _set_size(descriptor, size)

    async def kill(self) -> None:
        if not self._ended.done():
            self._is_killed = True
            self._conversation.kill()
        await asyncio.shield(self._outcome)

    async def wait(self) -> CommandOutcome:
        self._waiting += 1
        self._drain_for_who_waits()
        try:
            return await asyncio.shield(self._outcome)
        finally:
            self._waiting -= 1
            if not self._waiting:
                await self._stop_draining()

    def when_ended(self, told: Callable[[], object]) -> None:
        self._outcome.add_done_callback(lambda _: told())

    def stop(self, reason: Limit) -> None:
        """Because of a limit; the first one counts."""
        if self._stopped_by is None and not self._ended.done():
            self._stopped_by = reason
            self._is_killed = True
            self._conversation.kill()

    async def _follow(self, longest: float | None) -> CommandOutcome:
        try:
            async with asyncio.timeout(longest):
                said = await self._conversation.receive()
        except TimeoutError:
            self.stop(Limit.EXECUTION_TIME)
            said = await self._conversation.receive()
        self._conversation.close()
        seconds = time.monotonic() - self._started
        self._ended.set_result(None)
        values = {} if said is None else said.values
        return await self._finish(
            Ended(
                is_told="status" in values,
                status=values.get("status", _KILLED),
                cpu_seconds=values.get("cpu_seconds"),
                peak_memory=values.get("peak_memory"),
                stopped_by=self._stopped_by,
                is_killed=self._is_killed,
                seconds=seconds,
            )
        )

    async def _read(self) -> AsyncIterator[Output]:
        while self._open:
            if self._ended.done() and self._left is None:
                most = _TERMINAL_REST if self._streams.is_terminal else None
                self._left = {descriptor: most or _waiting_bytes(descriptor) for descriptor in self._open}
            for descriptor in tuple(self._open):
                piece = self._take(descriptor) if descriptor in self._open else b""
                if piece:
                    yield Output(stream=self._streams.outputs[descriptor], data=piece)
            if self._open and self._left is None:
                readable = [descriptor.fileno() for descriptor in self._open]
                await one_of(readable=readable, done=self._ended)

    def _take(self, descriptor: Descriptor) -> bytes:
        """What is there, within what may be read; the stream is closed when that was all."""
        left = None if self._left is None else self._left[descriptor]
        piece = read_piece(descriptor.fileno(), left) if left != 0 else b""
        if piece is None and self._left is None:
            return b""
        piece = piece or b""
        if self._left is not None:
            self._left[descriptor] -= len(piece)
        if not piece:
            del self._open[descriptor]
            descriptor.close()
        return self._within_limit(piece)

    def _within_limit(self, piece: bytes) -> bytes:
        if self._room is None:
            return piece
        if len(piece) > self._room:
            self.stop(Limit.OUTPUT)
            piece = piece[: self._room]
            for descriptor in self._open:
                descriptor.close()
            self._open.clear()
        self._room -= len(piece)
        return piece

    def _drain_for_who_waits(self) -> None:
        if self._waiting and not self._has_reader and self._draining is None:
            self._draining = asyncio.create_task(self._drain())

    async def _drain(self) -> None:
        async for _ in self._read():
            pass

    async def _stop_draining(self) -> None:
        if self._draining is not None:
            draining, self._draining = self._draining, None
            draining.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await draining


def _waiting_bytes(descriptor: Descriptor) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(descriptor.fileno(), termios.FIONREAD, count)
    return count[0]


def _set_size(descriptor: Descriptor, size: TerminalSize) -> None:
    fcntl.ioctl(descriptor.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", size.rows, size.columns, 0, 0))
