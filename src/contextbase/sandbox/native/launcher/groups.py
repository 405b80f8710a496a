"""The control groups of one command, as its errand uses them: opened while it may, used when it is inside."""

import contextlib
import os
import select
import signal
from collections.abc import Sequence
from pathlib import Path

__all__ = ["Groups", "join_groups"]

_TRIES, _PAUSE = 500, 10  # milliseconds


def join_groups(members: Sequence[str]) -> None:
    """With all that we fork from here on. The first one after a while takes the kernel 10 ms and more."""
    for path in members:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.write(descriptor, b"0")
        os.close(descriptor)


class Groups:
    def __init__(self, members: Sequence[str], stoppers: Sequence[tuple[str, str]]) -> None:
        self._joins = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in members]
        self._folders = [os.open(Path(path).parent, os.O_PATH | os.O_CLOEXEC) for path in members[:1]]
        self._stoppers = [(os.open(path, os.O_WRONLY | os.O_CLOEXEC), text) for path, text in stoppers]

    def join(self) -> None:
        for descriptor in self._joins:
            os.write(descriptor, b"0")
            os.close(descriptor)
        self._joins = []

    def kill(self) -> None:
        """All that is in there now but ourselves; the stoppers see to it that nothing is added."""
        for descriptor, text in self._stoppers:
            os.pwrite(descriptor, text.encode(), 0)
        for process in self._processes():
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)

    def kill_to_the_last(self) -> None:
        for _ in range(_TRIES):
            self.kill()
            left = self._processes()
            if not left:
                return
            _wait_for_end(left)

    def _processes(self) -> list[int]:
        found: list[int] = []
        for folder in self._folders:
            # Opened again each time: version 1 goes on showing what was there when the file was opened.
            with os.fdopen(os.open("cgroup.procs", os.O_RDONLY | os.O_CLOEXEC, dir_fd=folder), "rb") as file:
                found += [int(line) for line in file]
        return [process for process in found if process not in (0, os.getpid())]  # 0: of another process namespace


def _wait_for_end(processes: Sequence[int]) -> None:
    """Of one of them, or for a moment."""
    waiting = select.poll()
    with contextlib.ExitStack() as stack:
        for process in processes:
            with contextlib.suppress(ProcessLookupError):
                handle = os.pidfd_open(process)
                stack.callback(os.close, handle)
                waiting.register(handle, select.POLLIN)
        waiting.poll(_PAUSE)
