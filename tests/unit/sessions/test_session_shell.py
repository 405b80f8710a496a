"""A shell that goes on without whoever looks at it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from contextbase.channel.frames import FrameKind
from contextbase.channel.stream import ChannelStream
from contextbase.errors import Conflict
from contextbase.sandbox.model import TerminalSize
from contextbase.sessions.session_shell import SCROLL_BACK, SessionShell, ShellReader

_WINDOW = 1 << 20
_BOUND = 30.0


class _Sandbox:
    """The other side of the stream."""

    def __init__(self) -> None:
        self.typed = bytearray()
        self.sizes: list[TerminalSize] = []

    async def send_frame(self, stream: int, kind: FrameKind, data: bytes = b"") -> None:  # noqa: ARG002 - as the real one takes it
        if kind is FrameKind.DATA:
            self.typed += data

    def stream_finished(self, stream: ChannelStream) -> None:
        pass

    async def resize(self, size: TerminalSize) -> None:
        self.sizes.append(size)


@asynccontextmanager
async def running_shell() -> AsyncIterator[tuple[_Sandbox, ChannelStream, SessionShell]]:
    sandbox = _Sandbox()
    stream = ChannelStream(sandbox, 1, {}, window=_WINDOW)
    shell = SessionShell(stream=stream, set_size=sandbox.resize)
    task = asyncio.create_task(shell.run())
    try:
        yield sandbox, stream, shell
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def read(shell: SessionShell, reader: ShellReader, text: bytes) -> bytes:
    seen = b""
    async with asyncio.timeout(_BOUND):
        async for piece in shell.output(reader):
            seen += piece
            if text in seen:
                break
    return seen


async def test_whoever_comes_back_sees_what_was_shown_and_what_comes() -> None:
    async with running_shell() as (sandbox, stream, shell):
        stream.arrived(FrameKind.DATA, b"one\n")
        assert await read(shell, shell.reader(), b"one") == b"one\n"
        stream.arrived(FrameKind.DATA, b"two\n")
        await asyncio.sleep(0)
        second = shell.reader()
        stream.arrived(FrameKind.DATA, b"three\n")
        assert await read(shell, second, b"three") == b"one\ntwo\nthree\n"
        await shell.write(b"ls\n")
        await shell.resize(TerminalSize(rows=3, columns=4))
        assert (bytes(sandbox.typed), sandbox.sizes) == (b"ls\n", [TerminalSize(rows=3, columns=4)])


async def test_what_is_kept_is_bounded_and_begins_with_a_whole_line() -> None:
    async with running_shell() as (_, stream, shell):
        line = b"x" * 99 + b"\n"
        for _ in range(60):
            stream.arrived(FrameKind.DATA, line * 100)
            for _ in range(5):
                await asyncio.sleep(0)
        reader = shell.reader()
        assert SCROLL_BACK - len(line) <= reader.replayed <= SCROLL_BACK
        assert reader.replayed % len(line) == 0


async def test_a_reader_that_does_not_read_slows_the_shell_and_loses_nothing() -> None:
    async with running_shell() as (_, stream, shell):
        reader = shell.reader()
        sent = bytearray()
        for number in range(12):
            piece = bytes([65 + number]) * (1 << 16)
            stream.arrived(FrameKind.DATA, piece)
            sent += piece
            for _ in range(5):
                await asyncio.sleep(0)
        stream.arrived(FrameKind.END, b"")
        async with asyncio.timeout(_BOUND):
            assert b"".join([piece async for piece in shell.output(reader)]) == bytes(sent)
        assert shell.ended == ""


async def test_whoever_comes_while_much_is_shown_sees_each_byte_once() -> None:
    async with running_shell() as (_, stream, shell):
        pieces = [b"%07d\n" % number * (1 << 13) for number in range(7)]

        async def show(piece: bytes) -> None:
            stream.arrived(FrameKind.DATA, piece)
            for _ in range(5):
                await asyncio.sleep(0)

        for piece in pieces[:-1]:
            await show(piece)
        reader = shell.reader()
        await show(pieces[-1])
        stream.arrived(FrameKind.END, b"")
        async with asyncio.timeout(_BOUND):
            seen = b"".join([piece async for piece in shell.output(reader)])
        assert seen == b"".join(pieces)[-reader.replayed - len(pieces[-1]) :]


async def test_a_shell_that_is_ended_says_why_and_takes_nothing_more() -> None:
    async with running_shell() as (_, _, shell):
        reader = shell.reader()
        await shell.end("You may not.")
        async with asyncio.timeout(_BOUND):
            assert [piece async for piece in shell.output(reader)] == []
        assert (shell.ended, shell.is_watched) == ("You may not.", False)
        with pytest.raises(Conflict):
            await shell.write(b"x")


async def test_old_questions_to_a_terminal_are_not_asked_again_and_new_ones_are() -> None:
    async with running_shell() as (_, stream, shell):
        first = shell.reader()
        stream.arrived(FrameKind.DATA, b"where? \x1b[6n\r\n$ ")
        assert b"\x1b[6n" in await read(shell, first, b"$ ")
        again = shell.reader()
        assert again.replayed == len(again.earlier) > 0
        stream.arrived(FrameKind.DATA, b"what? \x1b[c%")
        seen = await read(shell, again, b"%")
        assert seen.startswith(b"where? ")
        assert b"\x1b[6n" not in seen
        assert b"\x1b[c" in seen
