"""The server's side of the launcher."""

import asyncio
import fcntl
import json
import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from contextbase.errors import MachineProblem
from contextbase.sandbox.descriptors import one_of
from contextbase.sandbox.native.launcher import program
from contextbase.sandbox.native.launcher.order import Order
from contextbase.sandbox.native.launcher.program_arguments import program_arguments

__all__ = ["Conversation", "Launcher", "Said"]

_LARGEST_ANSWER: Final = 1 << 16
_F_ADD_SEALS, _ALL_SEALS = 1033, 0xF


@dataclass(frozen=True, kw_only=True, slots=True)
class Said:
    values: dict[str, Any]
    descriptors: Sequence[int] = ()


class Conversation:
    """With a process that waits for an order and carries it out. Closing it ends what that process started."""

    def __init__(self, channel: socket.socket) -> None:
        self._channel = channel

    def send(self, order: Order, descriptors: Sequence[int] = ()) -> None:
        """The descriptors stay the caller's own. `BrokenPipeError` when the process is gone."""
        text = os.memfd_create("order")
        try:
            os.write(text, order.as_bytes())
            socket.send_fds(self._channel, [b"!"], [text, *descriptors])
        finally:
            os.close(text)

    async def receive(self) -> Said | None:
        """None: it ended without a further word."""
        never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        while True:
            try:
                text, descriptors, _, _ = socket.recv_fds(self._channel, _LARGEST_ANSWER, 4)
            except BlockingIOError:
                await one_of(readable=[self._channel.fileno()], done=never)
            except ConnectionResetError:
                return None
            else:
                return Said(values=json.loads(text), descriptors=descriptors) if text else None

    def kill(self) -> None:
        """Harmless when it ended. An end of the channel, not a word that somebody else could read before it does."""
        try:
            self._channel.shutdown(socket.SHUT_WR)
        except OSError:
            return  # it is gone, and all that it started with it

    def close(self) -> None:
        self._channel.close()


class Launcher:
    """Started when it is first needed, and again when it is gone. `root`: pairs of a path on this machine and the path
    that the launcher sees it at; empty: it sees what we see."""

    def __init__(self, *, root: Sequence[tuple[str, str]] = ()) -> None:
        self._root = root
        self._process: subprocess.Popen[bytes] | None = None
        self._channel: socket.socket | None = None
        self._starting = asyncio.Lock()

    async def open(self, groups: Sequence[str] = ()) -> Conversation:
        """With a new process, which joins control groups through these files while nobody waits for it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            await self._hand_over(json.dumps(list(groups)).encode(), theirs.fileno())
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        ours.setblocking(False)
        return Conversation(ours)

    async def close(self) -> None:
        async with self._starting:
            self._stop()

    async def _hand_over(self, text: bytes, descriptor: int) -> None:
        async with self._starting:
            for _ in range(2):
                channel = await asyncio.to_thread(self._start) if self._channel is None else self._channel
                try:
                    await _send(channel, text, descriptor)
                except (BrokenPipeError, ConnectionResetError):
                    self._stop()  # ended by somebody else: a new one can do as well
                else:
                    return
        raise MachineProblem("The process that starts sandboxes ends as soon as it is started; see the log.")

    def _start(self) -> socket.socket:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        interpreter = _sealed_interpreter()
        pairs = [path for pair in self._root for path in pair]
        arguments = program_arguments(program.__name__, str(theirs.fileno()), *pairs)
        try:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).resolve()), *arguments],
                executable=f"/proc/self/fd/{interpreter}",
                pass_fds=(theirs.fileno(), interpreter),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                env={"LANG": "C.UTF-8"},
                cwd="/",
                start_new_session=True,
            )
        except OSError as error:
            ours.close()
            raise MachineProblem(f"The process that starts sandboxes cannot be started: {error}.") from error
        finally:
            theirs.close()
            os.close(interpreter)
        ours.setblocking(False)
        self._channel = ours
        return ours

    def _stop(self) -> None:
        if self._channel is not None:
            self._channel.close()
            self._channel = None
        if self._process is not None:
            self._process.wait()
            self._process = None


async def _send(channel: socket.socket, text: bytes, descriptor: int) -> None:
    while True:
        try:
            socket.send_fds(channel, [text], [descriptor])
        except BlockingIOError:
            await asyncio.sleep(0.001)  # it takes hundreds at once: rare
        else:
            return


def _sealed_interpreter() -> int:
    """A copy of this Python that nobody can change, whoever owns the original: see `errand` for why."""
    copy = os.memfd_create("launcher", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    with Path(sys.executable).open("rb") as original:
        size = os.fstat(original.fileno()).st_size
        done = 0
        while done < size:
            sent = os.sendfile(copy, original.fileno(), done, size - done)
            if not sent:
                break
            done += sent
    fcntl.fcntl(copy, _F_ADD_SEALS, _ALL_SEALS)
    return copy
