"""The control groups of one command, as its errand uses them: opened while it may, used when it is inside."""

import os
import signal
import time
from collections.abc import Sequence

__all__ = ["Groups"]

_TRIES, _PAUSE = 500, 0.01


class Groups:
    def __init__(self, members: Sequence[str], stoppers: Sequence[tuple[str, str]]) -> None:
        self._joins = [os.open(path, os.O_WRONLY | os.O_CLOEXEC) for path in members]
        self._members = [os.open(path, os.O_RDONLY | os.O_CLOEXEC) for path in members[:1]]
        self._stoppers = [(os.open(path, os.O_WRONLY | os.O_CLOEXEC), text) for path, text in stoppers]

    def join(self) -> None:
        for descriptor in self._joins:
            os.write(descriptor, b"0")

    def kill(self) -> None:
        """All that is in there now; the stoppers see to it that nothing is added."""
        for descriptor, text in self._stoppers:
            os.pwrite(descriptor, text.encode(), 0)
        for process in self._processes():
            try:
                os.kill(process, signal.SIGKILL)
            except ProcessLookupError:
                continue

    def kill_to_the_last(self) -> None:
        for _ in range(_TRIES):
            self.kill()
            if not self._processes():
                return
            time.sleep(_PAUSE)

    def _processes(self) -> list[int]:
        found: list[int] = []
        for descriptor in self._members:
            text = b"".join(iter(_pieces(descriptor), b""))
            found += [int(line) for line in text.split()]
        return [process for process in found if process > 0]


def _pieces(descriptor: int):
    os.lseek(descriptor, 0, os.SEEK_SET)
    return lambda: os.read(descriptor, 1 << 16)
