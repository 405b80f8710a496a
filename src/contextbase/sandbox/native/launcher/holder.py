"""A sandbox's first process: a shell in bubblewrap that waits."""

import contextlib
import json
import os
import select
import signal
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["FILTER_DESCRIPTOR", "INFO_DESCRIPTOR", "WAITING_COMMAND", "HolderFailed", "SandboxHolder"]

INFO_DESCRIPTOR, FILTER_DESCRIPTOR = 3, 4
WAITING_COMMAND: Final = ("/bin/sh", "-c", 'trap "" CHLD; echo ready; while :; do read -r _; done')
"""The sandbox's process 1, which nothing inside can kill. Whoever loses its parent becomes its child, and is reaped by
the kernel because it does not want to hear of it. It reads from a pipe that it is the writer of, too: for ever."""

_READY: Final = b"ready\n"
_SECONDS: Final = 30


class HolderFailed(Exception):
    """No sandbox was made; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class SandboxHolder:
    process: int  # the first one inside: when it ends, everything inside does
    handle: int  # the same, and no other that gets its number later
    bubblewrap: int  # its parent, our child

    @classmethod
    def start(cls, line: Sequence[str], program: bytes) -> "SandboxHolder":
        """With bubblewrap's command line and the filter of kernel calls."""
        info, info_end = os.pipe()
        said, said_end = os.pipe()
        reads, writes = os.pipe()
        endless = os.open(f"/proc/self/fd/{reads}", os.O_RDWR)
        calls = os.memfd_create("filter")
        os.write(calls, program)
        os.lseek(calls, 0, os.SEEK_SET)
        theirs = (endless, said_end, said_end, info_end, calls)
        child = os.posix_spawn(line[0], list(line), {}, file_actions=_as_numbered(theirs), setsid=True)
        for descriptor in {*theirs, reads, writes}:
            os.close(descriptor)
        try:
            process = _wait_until_ready(info, said)
        except HolderFailed:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        finally:
            os.close(info)
            os.close(said)
        return cls(process=process, handle=os.pidfd_open(process), bubblewrap=child)

    def end(self) -> None:
        """With everything inside; returns when nothing of it is there."""
        with contextlib.suppress(ProcessLookupError):  # it went by itself
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        os.waitpid(self.bubblewrap, 0)


def _as_numbered(descriptors: Sequence[int]) -> list[tuple[int, int, int]]:
    """Have them as 0, 1, 2 and so on, by way of numbers that are none of these."""
    spare = max(*descriptors, len(descriptors)) + 1
    aside = [(os.POSIX_SPAWN_DUP2, descriptor, spare + place) for place, descriptor in enumerate(descriptors)]
    back = [(os.POSIX_SPAWN_DUP2, spare + place, place) for place in range(len(descriptors))]
    rest = [(os.POSIX_SPAWN_CLOSE, spare + place) for place in range(len(descriptors))]
    return [*aside, *back, *rest]  # type: ignore[list-item] # actions differ in length


def _wait_until_ready(info: int, said: int) -> int:
    """The number of the first process inside."""
    ends = time.monotonic() + _SECONDS
    text = b""
    while not text.startswith(_READY):
        left = ends - time.monotonic()
        if not select.select([said], [], [], max(0, left))[0]:
            raise HolderFailed(f"bubblewrap did not make a sandbox within {_SECONDS} seconds")
        piece = os.read(said, 4096)
        if not piece:
            raise HolderFailed(text.decode(errors="replace").strip() or "bubblewrap ended without a word")
        text += piece
    process: int = json.loads(os.read(info, 4096))["child-pid"]
    return process
