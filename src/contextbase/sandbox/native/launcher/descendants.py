"""All that a process started, whatever it did to get away; for one that is the reaper of its orphans."""

import contextlib
import os
import signal
import time
from pathlib import Path
from typing import Final, NamedTuple

__all__ = ["Process", "descendants", "end_descendants"]

_TICKS_PER_SECOND: Final = os.sysconf("SC_CLK_TCK")
_TRIES, _PAUSE = 1000, 0.005


class Process(NamedTuple):
    process_id: int
    parent: int
    group: int
    cpu_seconds: float  # with its ended children


def descendants() -> list[Process]:
    """All of ours that have not ended."""
    children: dict[int, list[Process]] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - a Path for each process would cost more than the rest
        if name.isdigit():
            process = _process(int(name))
            if process is not None:
                children.setdefault(process.parent, []).append(process)
    found: list[Process] = []
    waiting = [os.getpid()]
    while waiting:
        below = children.get(waiting.pop(), [])
        found += below
        waiting += [process.process_id for process in below]
    return found


def end_descendants() -> None:
    """Kill them until none is left; those that forked out of the way are ours again when their parent is gone."""
    for _ in range(_TRIES):
        for process in descendants():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process.process_id, signal.SIGKILL)
        try:
            while os.waitpid(-1, os.WNOHANG)[0]:
                pass
        except ChildProcessError:
            return
        time.sleep(_PAUSE)


def _process(process_id: int) -> Process | None:
    try:
        text = Path(f"/proc/{process_id}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None
    fields = text[text.rindex(b")") + 2 :].split()
    if fields[0] in (b"Z", b"X"):
        return None
    cpu = sum(map(int, fields[11:15])) / _TICKS_PER_SECOND
    return Process(process_id, int(fields[1]), int(fields[2]), cpu)
