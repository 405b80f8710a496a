"""Control groups: how the kernel holds processes to their limits, and tells what they used.

A node has a folder `contextbase-<name>` below the group that the server itself is in, so that what limits the server
limits its sandboxes, too. In it a sandbox has a group with its limits, and each command a leaf below that.
"""

import asyncio
import contextlib
import errno
import os
import signal
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from contextbase.limits import ResourceLimits

__all__ = [
    "NO_LIMITS",
    "ControlGroup",
    "Usage",
    "find_groups",
    "group_at",
    "group_named",
    "kill_group",
    "remove_group",
]

_PERIOD: Final = 100_000  # microseconds
_WANTED: Final = ("memory", "pids", "cpu")
_UNIFIED: Final = "unified"
_OLD: Final = 60  # seconds
_TRIES, _PAUSE = 500, 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class Usage:
    """What was used so far. None: the kernel does not say."""

    memory: int | None = None  # bytes now
    peak_memory: int | None = None
    cpu_seconds: float | None = None
    processes: int = 0
    killed_for_memory: int = 0
    refused_forks: int = 0
    throttled: int = 0


class ControlGroup(Protocol):
    """One group, with what is below it."""

    @property
    def members(self) -> tuple[str, ...]:
        """The files through which a process joins; reading the first one names those in it."""
        ...

    @property
    def stoppers(self) -> tuple[tuple[str, str], ...]:
        """What to write where, so that those in it start nothing new, or are killed."""
        ...

    @property
    def place(self) -> dict[str, str]:
        """Where it is, for `group_at`."""
        ...

    def below(self, name: str) -> "ControlGroup": ...

    def make(self, limits: ResourceLimits, *, extra_processes: int = 0) -> None:
        """Harmless when it is there. `extra_processes`: those that are ours and do not count."""
        ...

    def clear_old(self) -> None:
        """Remove the groups below that are a minute old and hold nobody: their makers are gone."""
        ...

    def leave(self) -> None:
        """Remove it if nothing is below; somebody else may use it, too."""
        ...

    def usage(self) -> Usage: ...

    def processes(self) -> list[int]:
        """With those of the groups below."""
        ...

    def remove(self) -> bool:
        """With the groups below; False while a process is left in one of them."""
        ...


NO_LIMITS: Final = ResourceLimits(
    max_memory=None, max_cpu=None, max_processes=None, max_execution_time=None, max_output=None, max_disk=None
)


@dataclass(frozen=True, kw_only=True, slots=True)
class SeparateGroups:
    """Version 1: a hierarchy for each controller."""

    folders: Mapping[str, Path]  # by controller

    @property
    def members(self) -> tuple[str, ...]:
        return tuple(str(folder / "cgroup.procs") for folder in self._distinct())

    @property
    def place(self) -> dict[str, str]:
        return {controller: str(folder) for controller, folder in self.folders.items()}

    @property
    def stoppers(self) -> tuple[tuple[str, str], ...]:
        return ((str(self.folders["pids"] / "pids.max"), "0"),) if "pids" in self.folders else ()

    def below(self, name: str) -> "SeparateGroups":
        return SeparateGroups(folders={controller: folder / name for controller, folder in self.folders.items()})

    def make(self, limits: ResourceLimits, *, extra_processes: int = 0) -> None:
        for folder in self._distinct():
            folder.mkdir(parents=True, exist_ok=True)
        if limits.max_memory is not None:
            self._set("memory", "memory.limit_in_bytes", limits.max_memory)
            if (self.folders["memory"] / "memory.memsw.limit_in_bytes").exists():
                self._set("memory", "memory.memsw.limit_in_bytes", limits.max_memory)
        if limits.max_processes is not None:
            self._set("pids", "pids.max", limits.max_processes + extra_processes)
        if limits.max_cpu is not None:
            self._set("cpu", "cpu.cfs_period_us", _PERIOD)
            self._set("cpu", "cpu.cfs_quota_us", _quota(limits.max_cpu))

    def clear_old(self) -> None:
        for folder in self._distinct():
            _clear_old(folder)

    def leave(self) -> None:
        for folder in self._distinct():
            _leave(folder)

    def usage(self) -> Usage:
        cpu = _number(self._file("cpuacct", "cpuacct.usage"))
        return Usage(
            memory=_number(self._file("memory", "memory.usage_in_bytes")),
            peak_memory=_number(self._file("memory", "memory.max_usage_in_bytes")),
            cpu_seconds=None if cpu is None else cpu / 1e9,
            processes=_number(self._file("pids", "pids.current")) or 0,
            killed_for_memory=_table(self._file("memory", "memory.oom_control")).get("oom_kill", 0),
            refused_forks=_table(self._file("pids", "pids.events")).get("max", 0),
            throttled=_table(self._file("cpu", "cpu.stat")).get("nr_throttled", 0),
        )

    def processes(self) -> list[int]:
        return _processes(next(iter(self._distinct())))

    def remove(self) -> bool:
        return [_remove(folder) for folder in self._distinct()].count(False) == 0

    def _distinct(self) -> list[Path]:
        return list(dict.fromkeys(self.folders.values()))

    def _file(self, controller: str, name: str) -> str | None:
        return f"{self.folders[controller]}/{name}" if controller in self.folders else None

    def _set(self, controller: str, name: str, value: int) -> None:
        _write(f"{self.folders[controller]}/{name}", value)


@dataclass(frozen=True, kw_only=True, slots=True)
class UnifiedGroup:
    """Version 2: one hierarchy, in which only leaves hold processes."""

    folder: Path

    @property
    def members(self) -> tuple[str, ...]:
        return (str(self.folder / "cgroup.procs"),)

    @property
    def place(self) -> dict[str, str]:
        return {_UNIFIED: str(self.folder)}

    @property
    def stoppers(self) -> tuple[tuple[str, str], ...]:
        kill = self.folder / "cgroup.kill"  # since Linux 5.14
        return ((str(kill), "1"),) if kill.exists() else ((str(self.folder / "pids.max"), "0"),)

    def below(self, name: str) -> "UnifiedGroup":
        return UnifiedGroup(folder=self.folder / name)

    def make(self, limits: ResourceLimits, *, extra_processes: int = 0) -> None:
        if not self.folder.exists():
            missing = [folder for folder in (self.folder, *self.folder.parents) if not folder.exists()]
            for folder in reversed(missing):
                _hand_down(folder.parent)
                folder.mkdir(exist_ok=True)
        if limits.max_memory is not None:
            self._set("memory.max", limits.max_memory)
            if (self.folder / "memory.swap.max").exists():
                self._set("memory.swap.max", 0)
        if limits.max_processes is not None:
            self._set("pids.max", limits.max_processes + extra_processes)
        if limits.max_cpu is not None:
            self._set("cpu.max", f"{_quota(limits.max_cpu)} {_PERIOD}")

    def clear_old(self) -> None:
        _clear_old(self.folder)

    def leave(self) -> None:
        _leave(self.folder)

    def usage(self) -> Usage:
        cpu = _table(f"{self.folder}/cpu.stat")
        return Usage(
            memory=_number(f"{self.folder}/memory.current"),
            peak_memory=_number(f"{self.folder}/memory.peak"),
            cpu_seconds=cpu["usage_usec"] / 1e6 if "usage_usec" in cpu else None,
            processes=_number(f"{self.folder}/pids.current") or 0,
            killed_for_memory=_table(f"{self.folder}/memory.events").get("oom_kill", 0),
            refused_forks=_table(f"{self.folder}/pids.events").get("max", 0),
            throttled=cpu.get("nr_throttled", 0),
        )

    def processes(self) -> list[int]:
        return _processes(self.folder)

    def remove(self) -> bool:
        return _remove(self.folder)

    def _set(self, name: str, value: int | str) -> None:
        _write(f"{self.folder}/{name}", value)


def group_at(place: dict[str, str]) -> ControlGroup:
    """One that was made before, by this process or another."""
    if _UNIFIED in place:
        return UnifiedGroup(folder=Path(place[_UNIFIED]))
    return SeparateGroups(folders={controller: Path(folder) for controller, folder in place.items()})


def kill_group(group: ControlGroup) -> None:
    """All that is in it now."""
    for file, text in group.stoppers:
        with contextlib.suppress(FileNotFoundError):
            _write(file, text)
    for process in group.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


async def remove_group(group: ControlGroup, *, tries: int = _TRIES) -> bool:
    """False when there still are processes in it: what is killed takes a moment to leave."""
    for _ in range(tries):
        if group.remove():
            return True
        await asyncio.sleep(_PAUSE)
    return False


def find_groups(name: str, *, own: str | None = None, mounts: str | None = None) -> tuple[ControlGroup | None, str]:
    """The node's own group, made, and a sentence for the operator; without one, the sentence says why. The texts are
    those of /proc/self/cgroup and /proc/self/mountinfo, unless they are given."""
    own = Path("/proc/self/cgroup").read_text(encoding="utf-8") if own is None else own
    mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8") if mounts is None else mounts
    for found in (_separate(own, mounts), _unified(own, mounts)):
        if found is None:
            continue
        group = found.below(f"contextbase-{name}")
        try:
            group.make(NO_LIMITS)
            probe = group.below(f"probe-{os.getpid()}")
            probe.make(ResourceLimits(max_memory=1 << 20))
            probe.remove()
        except OSError as error:
            return None, f"Control groups cannot be used ({error.strerror}: {error.filename}); limits are per process."
        version = "1" if isinstance(group, SeparateGroups) else "2"
        return group, f"Control groups (version {version}) hold memory, processes and processor time."
    return None, "This machine has no control groups for memory and processes; limits are per process."


def group_named(name: str, process: int) -> ControlGroup | None:
    """The group that somebody else made for this process, if it is one of this name and can be seen from here."""
    try:
        own = Path(f"/proc/{process}/cgroup").read_text(encoding="utf-8")
        mounts = Path("/proc/self/mountinfo").read_text(encoding="utf-8")
    except OSError:
        return None
    return (_separate(own, mounts) or _unified(own, mounts)) if name in own else None


def _separate(own: str, mounts: str) -> SeparateGroups | None:
    places = {}
    for root, place, kind, options in _mounted(mounts):
        if kind == "cgroup":
            for controller in options.split(","):
                places[controller] = (root, place)
    folders = {}
    for line in own.splitlines():
        _, controllers, path = line.split(":", 2)
        for controller in controllers.split(","):
            if controller in places and controller in (*_WANTED, "cpuacct"):
                root, place = places[controller]
                folders[controller] = Path(place + ("" if path == "/" else path.removeprefix(root.rstrip("/"))))
    return SeparateGroups(folders=folders) if set(_WANTED) <= set(folders) else None


def _unified(own: str, mounts: str) -> UnifiedGroup | None:
    path = next((line[3:] for line in own.splitlines() if line.startswith("0::")), None)
    for root, place, kind, _ in _mounted(mounts):
        if kind == "cgroup2" and path is not None:
            top = Path(place + ("" if path == "/" else path.removeprefix(root.rstrip("/"))))
            controllers = top / "cgroup.controllers"
            has = controllers.read_text(encoding="ascii").split() if controllers.exists() else []
            if set(_WANTED) <= set(has):
                return UnifiedGroup(folder=top)
    return None


def _mounted(mounts: str) -> Iterator[tuple[str, str, str, str]]:
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        kind, _, options = after.split(" ", 2)
        yield fields[3], fields[4].replace("\\040", " "), kind, options


def _hand_down(folder: Path) -> None:
    """Have the controllers in the groups below. A group that holds processes cannot: ours move into a leaf."""
    control = folder / "cgroup.subtree_control"
    if set(_WANTED) <= set(control.read_text(encoding="ascii").split()):
        return
    wanted = " ".join(f"+{controller}" for controller in _WANTED)
    try:
        control.write_text(wanted, encoding="ascii")
    except OSError as error:
        if str(os.getpid()) not in (folder / "cgroup.procs").read_text(encoding="ascii").split():
            raise
        if error.errno != errno.EBUSY:
            raise
        leaf = folder / "server"
        leaf.mkdir(exist_ok=True)
        for process in (folder / "cgroup.procs").read_text(encoding="ascii").split():
            (leaf / "cgroup.procs").write_text(process, encoding="ascii")
        control.write_text(wanted, encoding="ascii")


def _quota(percent: float) -> int:
    return max(1000, int(_PERIOD * percent / 100))


def _read(file: str) -> bytes | None:
    """None: an older kernel has no such file. Not by pathlib: this is done a dozen times for each command."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return None
    try:
        return os.read(descriptor, 1 << 16)
    finally:
        os.close(descriptor)


def _write(file: str, value: int | str) -> None:
    descriptor = os.open(file, os.O_WRONLY | os.O_TRUNC | os.O_CLOEXEC)
    try:
        os.write(descriptor, str(value).encode())
    except OSError as error:
        error.filename = file
        raise
    finally:
        os.close(descriptor)


def _number(file: str | None) -> int | None:
    text = None if file is None else _read(file)
    return None if text is None else int(text)


def _table(file: str | None) -> dict[str, int]:
    text = None if file is None else _read(file)
    return {name.decode(): int(value) for name, value in (line.split() for line in (text or b"").splitlines())}


def _folder_names(folder: Path) -> list[str]:
    try:
        return [entry.name for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
    except FileNotFoundError:
        return []


def _clear_old(folder: Path) -> None:
    for name in _folder_names(folder):
        below = folder / name
        with contextlib.suppress(OSError):  # somebody is in it, or it is gone
            if time.time() - below.stat().st_ctime > _OLD:
                below.rmdir()


def _leave(folder: Path) -> None:
    with contextlib.suppress(OSError):  # in use
        folder.rmdir()


def _processes(folder: Path) -> list[int]:
    found: list[int] = []
    for place, _, files in os.walk(folder):
        if "cgroup.procs" in files:
            found += map(int, (Path(place) / "cgroup.procs").read_text(encoding="ascii").split())
    return found


def _remove(folder: Path) -> bool:
    for name in _folder_names(folder):
        if not _remove(folder / name):
            return False
    try:
        folder.rmdir()
    except FileNotFoundError:
        return True
    except OSError:
        return False  # busy
    return True
