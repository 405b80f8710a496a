"""This terminal as that of a command on the server: what is typed goes there, and what it shows comes here."""

import asyncio
import os
import signal
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from contextbase.sdk.aio.terminal import AsyncTerminal

__all__ = ["LEAVE", "shown_terminal", "terminal_size"]

LEAVE: Final = b"\x1d"  # Ctrl-]
_LARGEST: Final = 9999  # rows or columns that the server takes
_ENDING: Final = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)


def terminal_size() -> os.terminal_size:
    """Of the terminal itself: $COLUMNS would not change with it, and standard output may be a file."""
    found = os.get_terminal_size(sys.stdin.fileno())
    return os.terminal_size((min(found.columns or 80, _LARGEST), min(found.lines or 24, _LARGEST)))


async def shown_terminal(terminal: "AsyncTerminal", *, leave: bytes | None = None) -> None:
    """Until the command ends, or `leave` is typed, which is not sent. When a signal ends this program, the terminal is
    as it was before."""
    loop = asyncio.get_running_loop()
    typed: asyncio.Queue[bytes] = asyncio.Queue(16)
    signals: list[signal.Signals] = []
    is_signaled = asyncio.Event()

    def end_by(number: signal.Signals) -> None:
        signals.append(number)
        is_signaled.set()

    loop.add_reader(sys.stdin.fileno(), _take, typed)
    loop.add_signal_handler(signal.SIGWINCH, lambda: loop.create_task(_resize(terminal)))
    for number in _ENDING:
        loop.add_signal_handler(number, end_by, number)
    work = (_send(terminal, typed, leave), _show(terminal), is_signaled.wait())
    ends = {asyncio.create_task(each) for each in work}
    try:
        with _raw_terminal():
            done, _ = await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                task.result()
    finally:
        for number in (signal.SIGWINCH, *_ENDING):
            loop.remove_signal_handler(number)
        for task in ends:
            task.cancel()
        await asyncio.gather(*ends, return_exceptions=True)
        loop.remove_reader(sys.stdin.fileno())
    for number in signals:
        signal.raise_signal(number)  # now as if nobody had caught it


async def _show(terminal: "AsyncTerminal") -> None:
    while piece := await terminal.receive():
        sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()


def _take(typed: asyncio.Queue[bytes]) -> None:
    typed.put_nowait(os.read(sys.stdin.fileno(), 4096))
    if typed.full():  # what is typed faster than it is sent waits in the terminal
        asyncio.get_running_loop().remove_reader(sys.stdin.fileno())


async def _send(terminal: "AsyncTerminal", typed: asyncio.Queue[bytes], leave: bytes | None) -> None:
    while data := await typed.get():
        asyncio.get_running_loop().add_reader(sys.stdin.fileno(), _take, typed)  # there is room again
        if leave is not None and leave in data:
            await terminal.send(data.partition(leave)[0])
            return
        await terminal.send(data)


async def _resize(terminal: "AsyncTerminal") -> None:
    size = terminal_size()
    await terminal.resize(rows=size.lines, columns=size.columns)


@contextmanager
def _raw_terminal() -> Iterator[None]:
    before = termios.tcgetattr(sys.stdin)
    tty.setraw(sys.stdin, termios.TCSADRAIN)  # what was typed meanwhile is kept
    try:
        yield
    finally:
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
