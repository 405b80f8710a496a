"""The processes that ended commands left in a container. Docker does not tell whose they are."""

import asyncio
import contextlib
import os
import signal
from collections import deque
from pathlib import Path
from typing import Final, NamedTuple

from contextbase.sandbox.cgroups import ControlGroup

__all__ = ["Crowd", "processes_of"]

_MOST_TOLD: Final = 8
_OWN: Final = 2  # processes of a container in which nothing of an agent's runs: the first one, and what it waits for
_TRIES, _PAUSE = 500, 0.01


class Crowd:
    """Of one container. Without its control group, which can only be seen on this machine, nothing is ended."""

    def __init__(self) -> None:
        self._running = 0
        self._ended: deque[str] = deque(maxlen=_MOST_TOLD)  # commands, since there was last nothing left of any

    def begin(self) -> None:
        self._running += 1

    def end(self, words: str, group: ControlGroup | None) -> None:
        self._running -= 1
        self._ended.append(words)
        if not self._running and group is not None and processes_of(group) <= _OWN:
            self._ended.clear()

    async def make_room(self, group: ControlGroup | None, *, most: int | None) -> tuple[str, ...]:
        """End all that is left in it, if that is at least half of the processes it may have and no command runs there.
        Returns the commands that may have left it."""
        if group is None or most is None or self._running or 2 * processes_of(group) < most:
            return ()
        told = tuple(self._ended)
        for _ in range(_TRIES):
            _kill(group)
            if 2 * processes_of(group) < most:
                self._ended.clear()
                return told
            await asyncio.sleep(_PAUSE)
        return ()


def _kill(group: ControlGroup) -> None:
    """All but the container's own; again and again, until those that fork out of the way are caught as well."""
    try:
        processes = group.processes()
    except OSError:
        return  # it went with its container
    own = _own(processes)
    for process in processes:
        if own and process not in own:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(process, signal.SIGKILL)


def processes_of(group: ControlGroup) -> int:
    try:
        return group.usage().processes
    except OSError:  # it went with its container
        return 0


def _own(processes: list[int]) -> set[int]:
    """The container's first process, and the one that it waits for: with either of them the container ends."""
    known = [found for process in processes if (found := _Known.of(process)) is not None]
    first = next((process.number for process in known if process.is_first), None)
    children = [process for process in known if process.parent == first]
    oldest = min(children, key=lambda process: process.started, default=None)
    return {number for number in (first, None if oldest is None else oldest.number) if number is not None}


class _Known(NamedTuple):
    number: int
    parent: int
    started: int
    is_first: bool  # of its process namespace: the kernel numbers a process in each that it is in

    @classmethod
    def of(cls, number: int) -> "_Known | None":
        """None: it has ended."""
        try:
            stat = Path(f"/proc/{number}/stat").read_bytes()
            status = Path(f"/proc/{number}/status").read_text(encoding="ascii", errors="replace")
        except OSError:
            return None
        fields = stat[stat.rindex(b")") + 2 :].split()
        numbers = next((line.split()[1:] for line in status.splitlines() if line.startswith("NSpid:")), [])
        return cls(number, int(fields[1]), int(fields[19]), numbers[-1:] == ["1"])
