"""The terminal of a command on the server, on this side of the socket: how it ends, and what it leaves behind."""

import asyncio
import fcntl
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import cast

import pytest
from websockets.asyncio.server import ServerConnection, serve

from contextbase.interfaces.cli import terminal as cli_terminal
from contextbase.interfaces.cli.terminal import shown_terminal, terminal_size
from contextbase.sdk.aio.terminal import AsyncTerminal, open_terminal

_BOUND = 60.0
_PROGRAM = """
import asyncio
from contextbase.interfaces.cli.terminal import shown_terminal

class Quiet:
    async def receive(self):
        print("ready", flush=True)
        await asyncio.sleep(3600)

asyncio.run(shown_terminal(Quiet()))
"""


class SlowTerminal:
    """Its server takes nothing until it `may_send`."""

    def __init__(self) -> None:
        self.asked, self.may_send, self.ended = asyncio.Event(), asyncio.Event(), asyncio.Event()
        self.sent = bytearray()

    async def send(self, data: bytes) -> None:
        self.asked.set()
        await self.may_send.wait()
        self.sent += data

    async def receive(self) -> bytes:
        await self.ended.wait()
        return b""


async def write_all(descriptor: int, data: bytes) -> None:
    os.set_blocking(descriptor, False)
    while data:
        with suppress(BlockingIOError):
            data = data[os.write(descriptor, data[:1024]) :]
        await asyncio.sleep(0.001)


async def vanish(connection: ServerConnection) -> None:
    connection.transport.abort()


@pytest.mark.parametrize(
    ("end", "refusal"),
    [
        (lambda socket: socket.close(), None),
        (lambda socket: socket.close(1008, "You may not."), "You may not."),
        (lambda socket: socket.close(1009, "Too much."), "Too much."),
        (lambda socket: socket.close(1012), "connection"),
        (vanish, "connection"),
    ],
    ids=["ended", "refused", "too much", "server stops", "lost"],
)
async def test_a_terminal_that_did_not_end_by_itself_says_why(
    end: Callable[[ServerConnection], Awaitable[None]], refusal: str | None
) -> None:
    async def served(connection: ServerConnection) -> None:
        await connection.send(b"$ ")
        await end(connection)

    async with serve(served, "127.0.0.1", 0) as server:
        address = f"ws://127.0.0.1:{server.sockets[0].getsockname()[1]}"
        async with open_terminal(address, {}) as terminal:
            assert await terminal.receive() == b"$ "
            assert await terminal.receive() == b""
            assert (terminal.refusal is None) == (refusal is None)
            assert (refusal or "") in (terminal.refusal or "")


@pytest.mark.parametrize(
    ("rows", "columns", "size"), [(30, 100, (100, 30)), (0, 0, (80, 24)), (50_000, 60_000, (9999, 9999))]
)
def test_the_size_is_that_of_the_terminal(
    rows: int, columns: int, size: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    with os.fdopen(theirs) as terminal:
        monkeypatch.setattr("sys.stdin", terminal)
        assert terminal_size() == size
    os.close(ours)


async def test_what_is_typed_faster_than_it_is_sent_waits_and_is_sent_in_order(monkeypatch: pytest.MonkeyPatch) -> None:
    ours, theirs = pty.openpty()
    looks: list[int] = []

    def take(typed: asyncio.Queue[bytes]) -> None:
        looks.append(typed.qsize())
        taken(typed)

    taken = cli_terminal._take
    monkeypatch.setattr(cli_terminal, "_take", take)
    terminal, text = SlowTerminal(), b"".join(b"%07d\n" % number for number in range(20_000))
    with os.fdopen(theirs) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        async with asyncio.timeout(_BOUND), asyncio.TaskGroup() as tasks:
            tasks.create_task(shown_terminal(cast("AsyncTerminal", terminal)))
            tasks.create_task(write_all(ours, text))
            await terminal.asked.wait()
            await asyncio.sleep(0.5)
            assert len(looks) <= len(text) >> 10, "it waits, and does not look again and again"
            terminal.may_send.set()
            while len(terminal.sent) < len(text):  # noqa: ASYNC110 - another task fills it
                await asyncio.sleep(0.01)
            terminal.ended.set()
    os.close(ours)
    assert bytes(terminal.sent) == text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT, signal.SIGINT], ids=str)
def test_a_signal_that_ends_the_program_leaves_the_terminal_as_it_was(number: signal.Signals) -> None:
    ours, theirs = pty.openpty()
    before = termios.tcgetattr(theirs)
    process = subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    try:
        deadline, seen = time.monotonic() + _BOUND, b""
        while b"ready" not in seen or termios.tcgetattr(theirs) == before:
            assert time.monotonic() < deadline, seen
            if select.select([ours], [], [], 0.1)[0]:
                seen += os.read(ours, 4096)
        process.send_signal(number)
        assert process.wait(_BOUND) == -number
        assert termios.tcgetattr(theirs) == before
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(theirs)
