"""The processes of a run: those that the executor started, with everything that these started and left behind."""

import asyncio
import contextlib
import ctypes
import os
import signal
import time
from collections.abc import Collection
from pathlib import Path
from typing import Final

__all__ = ["MARK", "RunProcesses"]

MARK: Final = "CONTEXTBASE_RUN"
"""The variable that tells a process of a run from others, when the executor that started it is gone."""

_PROC: Final = Path("/proc")
_SET_CHILD_SUBREAPER: Final = 36
_LONGEST_END: Final = 5.0
_PAUSE: Final = 0.02
_REAP_PAUSE: Final = 5.0


class RunProcesses:
    """What loses its parent inside becomes our child, so nothing a run started gets away from us. `apart`: first
    processes of others, such as terminals."""

    def __init__(self) -> None:
        self.apart: set[int] = set()
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)

    def has_children(self, process: int) -> bool:
        """Living ones."""
        return any(parent == process and state != "Z" for parent, state in _table().values())

    async def end_all(self, *, spared: int | None = None) -> bool:
        """False: some are still there after a while. `spared`: one that nothing was started by."""
        deadline = time.monotonic() + _LONGEST_END
        apart = self.apart if spared is None else {*self.apart, spared}
        while found := _below(os.getpid(), apart):
            for process in found:
                _kill(process)
                _reap(process)
            if time.monotonic() > deadline:
                return False
            await asyncio.sleep(_PAUSE)
        return True

    async def keep_reaping(self) -> None:
        """Of what was left to us, the ended ones would fill the sandbox. Those we started are waited for elsewhere, at
        once: who has ended for longer is not one of them."""
        before: set[int] = set()
        while True:
            await asyncio.sleep(_REAP_PAUSE)
            now = {process for process, (parent, state) in _table().items() if parent == os.getpid() and state == "Z"}
            for process in now & before:
                _reap(process)
            before = now

    @staticmethod
    def end_leftovers() -> None:
        """Of an executor that was killed: its runs' processes are nobody's now."""
        for place in _PROC.iterdir():
            if place.name.isdigit() and int(place.name) != os.getpid():
                with contextlib.suppress(OSError):
                    variables = (place / "environ").read_bytes().split(b"\0")
                    if any(variable.startswith(f"{MARK}=".encode()) for variable in variables):
                        _kill(int(place.name))


def _table() -> dict[int, tuple[int, str]]:
    """Parent and state of each process."""
    found = {}
    for place in _PROC.iterdir():
        if place.name.isdigit():
            with contextlib.suppress(OSError, ValueError, IndexError):
                state, parent = (place / "stat").read_text(errors="replace").rpartition(")")[2].split()[:2]
                found[int(place.name)] = (int(parent), state)
    return found


def _below(top: int, apart: Collection[int]) -> list[int]:
    table = _table()
    found: list[int] = []
    above = {top}
    while above:
        above = {process for process, (parent, _) in table.items() if parent in above and process not in apart}
        found += above
    return found


def _kill(process: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(process, signal.SIGKILL)


def _reap(process: int) -> None:
    with contextlib.suppress(ChildProcessError):
        os.waitpid(process, os.WNOHANG)
