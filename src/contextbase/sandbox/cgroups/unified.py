"""Version 2 of control groups."""

import errno
import os
from dataclasses import dataclass
from pathlib import Path

from contextbase.limits import ResourceLimits
from contextbase.sandbox.cgroups import files
from contextbase.sandbox.cgroups.model import CONTROLLERS, Usage

__all__ = ["UNIFIED", "UnifiedGroup"]

UNIFIED = "unified"


@dataclass(frozen=True, kw_only=True, slots=True)
class UnifiedGroup:
    """Version 2: one hierarchy, in which only leaves hold processes."""

    folder: Path

    @property
    def members(self) -> tuple[str, ...]:
        return (str(self.folder / "cgroup.procs"),)

    @property
    def place(self) -> dict[str, str]:
        return {UNIFIED: str(self.folder)}

    @property
    def stoppers(self) -> tuple[tuple[str, str], ...]:
        kill = self.folder / "cgroup.kill"  # since Linux 5.14
        return ((str(kill), "1"),) if kill.exists() else ((str(self.folder / "pids.max"), "0"),)

    def below(self, name: str) -> "UnifiedGroup":
        return UnifiedGroup(folder=self.folder / name)

    def names_below(self) -> list[str]:
        return files.names_below(self.folder)

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
            self._set("cpu.max", f"{files.quota(limits.max_cpu)} {files.PERIOD}")

    def clear_old(self) -> None:
        files.clear_old(self.folder)

    def leave(self) -> None:
        files.leave(self.folder)

    def usage(self) -> Usage:
        cpu = files.table(f"{self.folder}/cpu.stat")
        return Usage(
            memory=files.number(f"{self.folder}/memory.current"),
            peak_memory=files.number(f"{self.folder}/memory.peak"),
            cpu_seconds=cpu["usage_usec"] / 1e6 if "usage_usec" in cpu else None,
            processes=files.number(f"{self.folder}/pids.current") or 0,
            killed_for_memory=files.table(f"{self.folder}/memory.events").get("oom_kill", 0),
            refused_forks=files.table(f"{self.folder}/pids.events").get("max", 0),
            throttled=cpu.get("nr_throttled", 0),
        )

    def processes(self) -> list[int]:
        return files.processes(self.folder)

    def remove(self) -> bool:
        return files.remove(self.folder)

    def _set(self, name: str, value: int | str) -> None:
        files.write(f"{self.folder}/{name}", value)


def _hand_down(folder: Path) -> None:
    """Have the controllers in the groups below. A group that holds processes cannot: ours move into a leaf."""
    control = folder / "cgroup.subtree_control"
    if set(CONTROLLERS) <= set(control.read_text(encoding="ascii").split()):
        return
    wanted = " ".join(f"+{controller}" for controller in CONTROLLERS)
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
