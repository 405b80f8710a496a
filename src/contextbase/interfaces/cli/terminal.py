"""This terminal as that of a command on the server: what is typed goes there, and what it shows comes here."""

import asyncio
import os
import shutil
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextbase.sdk.aio.terminal import AsyncTerminal

__all__ = ["LEAVE", "shown_terminal"]

LEAVE: Final = b"\x1d"  # Ctrl-]


async def shown_terminal(terminal: "AsyncTerminal", *, leave: bytes | None = None) -> None:
    """Until the command ends, or `leave` is typed, which is not sent."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Queue[bytes] = asyncio.Queue(16)
    loop.add_reader(sys.stdin.fileno(), lambda: _take(typed))
    loop.add_signal_handler(signal.SIGWINCH, lambda: loop.create_task(_resize(terminal)))
    ends = {asyncio.create_task(_send(terminal, typed, leave)), asyncio.create_task(_show(terminal))}
    try:
        with _raw_terminal():
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        loop.remove_reader(sys.stdin.fileno())
        loop.remove_signal_handler(signal.SIGWINCH)
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)


async def _show(terminal: "AsyncTerminal") -> None:
    while piece := await terminal.receive():
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _take(typed: asyncio.Queue[bytes]) -> None:
    if not typed.full():  # what is typed faster than it is sent waits in the terminal
        typed.put_nowait(os.read(sys.stdin.fileno(), 4096))


async def _send(terminal: "AsyncTerminal", typed: asyncio.Queue[bytes], leave: bytes | None) -> None:
    while data := await typed.get():
        if leave is not None and leave in data:
            await terminal.send(data.partition(leave)[0])
            return
        await terminal.send(data)


async def _resize(terminal: "AsyncTerminal") -> None:
    size = shutil.get_terminal_size()
    await terminal.resize(rows=size.lines, columns=size.columns)


@contextmanager
def _raw_terminal() -> Iterator[None]:
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # what was typed meanwhile is kept
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
