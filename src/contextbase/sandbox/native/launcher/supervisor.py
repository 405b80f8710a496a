"""A program of its own that runs one command and sees to its limits; `contextbase.standalone.command` starts it.

It is the reaper of everything the command starts: what detaches itself is still seen, counted and ended. When the
program that wants the answer dies, the lifeline closes and everything ends. Standard library only: it starts in 50 ms.
"""

import json
import os
import resource
import select
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Any, Final

from contextbase.sandbox.native.launcher import system
from contextbase.sandbox.native.launcher.descendants import Process, descendants
from contextbase.sandbox.native.launcher.disk_use import DiskUse

__all__ = ["main"]

_TICK: Final = 0.05
_PAGE: Final = os.sysconf("SC_PAGE_SIZE")
_BURST: Final = 0.1
"""Seconds of full speed before the processor's limit is felt."""

_DISK_PAUSE: Final = 0.1


class _Supervisor:
    def __init__(self, command: list[str], limits: dict[str, Any], *, lifeline: int, folders: list[Path]) -> None:
        self.limits = limits
        self.lifeline = lifeline
        self.started = time.monotonic()
        self.exit_code: int | None = None
        self.stopped_by: str | None = None
        self.peak_memory = 0
        self.cpu_seconds = 0.0
        self.slowed_down = False
        self._is_paused = False
        self._credit = _BURST
        self._credited_at = self.started
        self._woken, self._wakes = os.pipe()
        os.set_blocking(self._wakes, False)
        signal.set_wakeup_fd(self._wakes, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        most = limits["max_disk"]
        self._disk = None if most is None else DiskUse(folders, most)
        self._disk_is_full = threading.Event()
        self._main = _start(command, limits)
        if self._disk is not None:
            threading.Thread(target=self._watch_disk, args=(self._disk,), daemon=True).start()

    def run(self) -> None:
        while self._goes_on():
            if self.lifeline in self._pause(self.lifeline):
                self.stopped_by = "caller"
        self._end_all()
        if self.stopped_by is None and self._disk is not None and self._disk.was_exceeded():
            self.stopped_by = "disk"  # it was quicker than we look

    def _watch_disk(self, disk: DiskUse) -> None:
        """In a thread: a large folder takes longer to look through than the other limits can wait."""
        while not disk.is_exceeded():
            time.sleep(_DISK_PAUSE)
        self._disk_is_full.set()

    def _pause(self, *descriptors: int) -> list[int]:
        """Until a child ends, a descriptor can be read, or a tick is over; those that can be read."""
        ready, _, _ = select.select([self._woken, *descriptors], [], [], _TICK)
        if self._woken in ready:
            os.read(self._woken, 4096)
        return ready

    def _goes_on(self) -> bool:
        self._reap()
        if self.stopped_by is None and self.exit_code is None:
            processes = descendants()
            self._check(processes)
            self._pace(processes)
        return self.stopped_by is None and self.exit_code is None

    def _check(self, processes: list[Process]) -> None:
        memory = sum(_memory(process.process_id) for process in processes)
        self.peak_memory = max(self.peak_memory, memory)
        used = {
            "memory": (memory, self.limits["max_memory"]),
            "processes": (len(processes), self.limits["max_processes"]),
            "execution-time": (time.monotonic() - self.started, self.limits["max_execution_time"]),
        }
        for name, (amount, most) in used.items():
            if most is not None and amount > most:
                self.stopped_by = name
        if self._disk_is_full.is_set():
            self.stopped_by = "disk"

    def _pace(self, processes: list[Process]) -> None:
        """Who has used more than its share pauses until it has earned it."""
        used = _children_cpu() + sum(process.cpu_seconds for process in processes)
        now = time.monotonic()
        percent = self.limits["max_cpu"]
        if percent is not None:
            earned = percent / 100 * (now - self._credited_at)
            self._credit = min(self._credit + earned - max(0.0, used - self.cpu_seconds), _BURST)
            should_pause = self._credit < 0
            if should_pause or self._is_paused:
                self.slowed_down = True
                _send(processes, signal.SIGSTOP if should_pause else signal.SIGCONT)
            self._is_paused = should_pause
        self._credited_at = now
        self.cpu_seconds = max(self.cpu_seconds, used)

    def _end_all(self) -> None:
        while _has_children():
            processes = descendants()
            for group in {process.group for process in processes} - {os.getpgrp()}:
                _signal(-group, signal.SIGKILL)  # at once for all of it: nothing forks out of the way
            _send(processes, signal.SIGKILL)
            self._pause()
            self._reap()
        self.cpu_seconds = max(self.cpu_seconds, _children_cpu())

    def _reap(self) -> None:
        while True:
            try:
                process_id, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if process_id == 0:
                return
            if process_id == self._main:
                self.exit_code = os.waitstatus_to_exitcode(status)


def _start(command: list[str], limits: dict[str, Any]) -> int:
    child = os.fork()
    if child:
        return child
    try:
        os.setsid()
        system.die_with_parent()
        for number in (signal.SIGPIPE, signal.SIGCHLD, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        if limits["max_memory"] is not None:
            resource.setrlimit(resource.RLIMIT_DATA, (limits["max_memory"], limits["max_memory"]))
        if limits["max_disk"] is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limits["max_disk"], limits["max_disk"]))
        os.execvp(command[0], command)  # noqa: S606 - running the given command is what this is for
    except OSError as error:
        os.write(2, f"{command[0]}: {error.strerror}\n".encode(errors="backslashreplace"))
        os._exit(127 if isinstance(error, FileNotFoundError) else 126)
    finally:
        os._exit(126)  # whatever happens, the child must not go on as a second supervisor


def _has_children() -> bool:
    try:
        os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return False
    return True


def _memory(process_id: int) -> int:
    """What is its own: not the programs and libraries that it shares with others."""
    try:
        with open(f"/proc/{process_id}/statm", "rb") as file:  # noqa: PTH123 - as above
            _, resident, shared, *_ = map(int, file.read().split())
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return (resident - shared) * _PAGE


def _children_cpu() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _send(processes: list[Process], number: int) -> None:
    for process in processes:
        _signal(process.process_id, number)


def _signal(target: int, number: int) -> None:
    try:
        os.kill(target, number)
    except ProcessLookupError:
        return


def main() -> None:
    """Its argument: JSON with the command, its limits, the folders it writes to, and the two descriptors to its
    caller."""
    request = json.loads(sys.argv[1])
    lifeline, answer = request["lifeline"], request["answer"]
    for descriptor in (lifeline, answer):
        os.set_inheritable(descriptor, False)
    system.reap_orphans()
    folders = [Path(folder) for folder in request["folders"]]
    supervisor = _Supervisor(request["command"], request["limits"], lifeline=lifeline, folders=folders)
    supervisor.run()
    if supervisor.stopped_by is None and supervisor.exit_code in (-signal.SIGXFSZ, 128 + signal.SIGXFSZ):
        supervisor.stopped_by = "disk"  # one file as large as all it may write; also as a shell tells it
    said = {
        "exit_code": supervisor.exit_code,
        "stopped_by": supervisor.stopped_by,
        "seconds": time.monotonic() - supervisor.started,
        "cpu_seconds": supervisor.cpu_seconds,
        "peak_memory": supervisor.peak_memory,
        "slowed_down": supervisor.slowed_down,
    }
    os.write(answer, json.dumps(said).encode())
