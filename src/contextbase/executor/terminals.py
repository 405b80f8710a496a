"""Shells for people: a terminal inside, its bytes on a stream."""

import asyncio
import contextlib
import fcntl
import os
import pty
import signal
import struct
import termios
from collections.abc import Callable
from typing import Final

from contextbase.agents.model import AgentPlace
from contextbase.channel.stream import ChannelStream
from contextbase.executor.calls import CallAnswer, CallHandler, CallRefused, ExecutorCall
from contextbase.executor.processes import RunProcesses

__all__ = ["MOST_TERMINALS", "Terminals"]

MOST_TERMINALS: Final = 8
"""That are open at once in a sandbox; one more is cut."""

_SHELLS: Final = ("/bin/bash", "/bin/sh")
_PIECE: Final = 1 << 16
_PATIENCE: Final = 2.0


class Terminals:
    """What runs in them is not a run's: it stays when a run ends."""

    def __init__(self, place: AgentPlace, processes: RunProcesses) -> None:
        self._place = place
        self._processes = processes
        self._open: dict[str, int] = {}  # our ends

    def handlers(self) -> dict[tuple[str, str], CallHandler]:
        return {("POST", "/terminals/{name}/size"): self.resize}

    async def serve(self, stream: ChannelStream) -> None:
        """Until the shell ends, or who looks at it goes away."""
        name = str(stream.about.get("name"))
        if name in self._open or len(self._open) >= MOST_TERMINALS:
            await stream.cut()
            return
        ours, theirs = pty.openpty()
        process: asyncio.subprocess.Process | None = None
        self._open[name] = ours
        try:
            _set_size(ours, stream.about.get("rows"), stream.about.get("columns"))
            try:
                process = await self._shell(theirs)
            finally:
                os.close(theirs)
            self._processes.apart.add(process.pid)
            await self._joined(stream, ours, process)
        finally:
            del self._open[name]
            os.close(ours)  # the shell gets SIGHUP
            if process is not None:
                await _ended(process)
                self._processes.apart.discard(process.pid)

    async def resize(self, call: ExecutorCall) -> CallAnswer:
        body = await call.json()
        descriptor = self._open.get(call.names["name"])
        if descriptor is None:
            raise CallRefused(404, "not_found", "There is no terminal of that name.")
        _set_size(descriptor, body.get("rows"), body.get("columns"))
        return CallAnswer(values={})

    async def _shell(self, terminal: int) -> asyncio.subprocess.Process:
        shell = next((each for each in _SHELLS if os.access(each, os.X_OK)), _SHELLS[-1])
        return await asyncio.create_subprocess_exec(
            shell,
            "-i",
            cwd=self._place.workspace,
            env={**self._place.environment, "TERM": "xterm-256color"},
            stdin=terminal,
            stdout=terminal,
            stderr=terminal,
            start_new_session=True,
            preexec_fn=_take_terminal,
        )

    async def _joined(self, stream: ChannelStream, ours: int, process: asyncio.subprocess.Process) -> None:
        async def typed() -> None:
            while data := await stream.read():
                while data:
                    await _ready(asyncio.get_running_loop().add_writer, asyncio.get_running_loop().remove_writer, ours)
                    data = data[os.write(ours, data) :]

        async def shown() -> None:
            with contextlib.suppress(OSError):  # as a terminal says that nobody is left in it
                while data := await _read(ours):
                    await stream.write(data)

        os.set_blocking(ours, False)
        tasks = [asyncio.create_task(typed()), asyncio.create_task(shown())]
        ending = asyncio.create_task(process.wait())
        try:
            await asyncio.wait((*tasks, ending), return_when=asyncio.FIRST_COMPLETED)
            if ending.done():  # what it said last
                await asyncio.wait(tasks[1:], timeout=_PATIENCE)
        finally:
            for task in (*tasks, ending):
                task.cancel()
            await asyncio.gather(*tasks, ending, return_exceptions=True)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)


def _set_size(descriptor: int, rows: object, columns: object) -> None:
    if not all(type(each) is int and 0 < each < 10_000 for each in (rows, columns)):
        raise CallRefused(400, "invalid_input", "A terminal has rows and columns.")
    fcntl.ioctl(descriptor, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


async def _ready(add: Callable[..., None], remove: Callable[[int], object], descriptor: int) -> None:
    ready: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def is_ready() -> None:
        if not ready.done():
            ready.set_result(None)

    add(descriptor, is_ready)
    try:
        await ready
    finally:
        remove(descriptor)


async def _read(descriptor: int) -> bytes:
    loop = asyncio.get_running_loop()
    while True:
        await _ready(loop.add_reader, loop.remove_reader, descriptor)
        with contextlib.suppress(BlockingIOError):
            return os.read(descriptor, _PIECE)


async def _ended(process: asyncio.subprocess.Process) -> None:
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await process.wait()
            return
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
