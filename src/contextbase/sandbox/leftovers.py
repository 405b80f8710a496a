"""What commands that have ended left running in a sandbox that stays. It may go on, unless it keeps others out."""

import asyncio
import contextlib
import os
import select
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from contextbase.sandbox.cgroups import ControlGroup, kill_group
from contextbase.sandbox.descriptors import one_of

__all__ = ["Leftovers", "emptied", "words_of"]

_LONGEST_WORDS: Final = 200
_LONGEST_WAIT: Final = 5.0  # seconds
_SHORTEST_PAUSE, _LONGEST_PAUSE = 0.001, 0.02
_UNKNOWN: Final = "a command from before the server was restarted"


def words_of(argv: Sequence[str]) -> str:
    """A command as it is told to people."""
    words = " ".join(argv)
    return words if len(words) <= _LONGEST_WORDS else f"{words[: _LONGEST_WORDS - 1]}…"


async def emptied(group: ControlGroup) -> bool:
    """Kill everything in a group and wait until it is gone. Dead processes count until they are reaped. False when
    something is left after five seconds."""
    loop, pause = asyncio.get_running_loop(), _SHORTEST_PAUSE
    deadline, never = loop.time() + _LONGEST_WAIT, loop.create_future()
    while True:
        with _reaped(group.processes()) as reaped:
            kill_group(group)
            if not group.usage().processes:
                return True
            if loop.time() >= deadline:
                return False
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(pause):
                    await one_of(readable=[reaped], done=never)
        pause = min(2 * pause, _LONGEST_PAUSE)


@contextlib.contextmanager
def _reaped(processes: Iterable[int]) -> Iterator[int]:
    """A descriptor that can be read when one of them is not only dead, but reaped. (Kernels before 6.9 do not tell.)"""
    with contextlib.ExitStack() as stack, select.epoll() as waiting:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                handle = os.pidfd_open(process)
                stack.callback(os.close, handle)
                waiting.register(handle, 0)  # nothing but the hang-up, which is always told
        yield waiting.fileno()


@dataclass(frozen=True, kw_only=True, slots=True)
class _Stray:
    name: str
    group: ControlGroup
    processes: int


class Leftovers:
    """Of one sandbox, whose group has a leaf for each of its commands."""

    def __init__(self) -> None:
        self._running: dict[str, str] = {}  # commands by the names of their leaves
        self._ended: dict[str, str] = {}

    def begin(self, leaf: str, words: str) -> None:
        self._running[leaf] = words

    def end(self, leaf: str) -> None:
        if leaf in self._running:
            self._ended[leaf] = self._running.pop(leaf)

    async def make_room(self, sandbox: ControlGroup, *, most: int) -> tuple[str, ...]:
        """End what keeps the sandbox from starting processes, if ended commands left at least half of all that it may
        have: those with the most first, until half of it is free. Returns these commands."""
        strays = self._strays(sandbox)
        if 2 * sum(stray.processes for stray in strays) < most:
            return ()
        ended: list[str] = []
        for stray in sorted(strays, key=lambda stray: stray.processes, reverse=True):
            if 2 * sandbox.usage().processes <= most:
                break
            await emptied(stray.group)
            stray.group.remove()
            ended.append(self._ended.pop(stray.name, _UNKNOWN))
        return tuple(ended)

    def _strays(self, sandbox: ControlGroup) -> list[_Stray]:
        names = [name for name in sandbox.names_below() if name.startswith("exec-") and name not in self._running]
        for gone in self._ended.keys() - set(names):
            del self._ended[gone]
        groups = [(name, sandbox.below(name)) for name in names]
        return [_Stray(name=name, group=group, processes=group.usage().processes) for name, group in groups]
