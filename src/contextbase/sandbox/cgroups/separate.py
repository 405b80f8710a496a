"""Version 1 of control groups."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from contextbase.limits import ResourceLimits
from contextbase.sandbox.cgroups import files
from contextbase.sandbox.cgroups.model import Usage

__all__ = ["SeparateGroups"]


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

    def names_below(self) -> list[str]:
        return files.names_below(self.folders["pids"] if "pids" in self.folders else self._distinct()[0])

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
            self._set("cpu", "cpu.cfs_period_us", files.PERIOD)
            self._set("cpu", "cpu.cfs_quota_us", files.quota(limits.max_cpu))

    def clear_old(self) -> None:
        for folder in self._distinct():
            files.clear_old(folder)

    def leave(self) -> None:
        for folder in self._distinct():
            files.leave(folder)

    def usage(self) -> Usage:
        cpu = files.number(self._file("cpuacct", "cpuacct.usage"))
        return Usage(
            memory=files.number(self._file("memory", "memory.usage_in_bytes")),
            peak_memory=files.number(self._file("memory", "memory.max_usage_in_bytes")),
            cpu_seconds=None if cpu is None else cpu / 1e9,
            processes=files.number(self._file("pids", "pids.current")) or 0,
            killed_for_memory=files.table(self._file("memory", "memory.oom_control")).get("oom_kill", 0),
            refused_forks=files.table(self._file("pids", "pids.events")).get("max", 0),
            throttled=files.table(self._file("cpu", "cpu.stat")).get("nr_throttled", 0),
        )

    def processes(self) -> list[int]:
        return files.processes(next(iter(self._distinct())))

    def remove(self) -> bool:
        return [files.remove(folder) for folder in self._distinct()].count(False) == 0

    def _distinct(self) -> list[Path]:
        return list(dict.fromkeys(self.folders.values()))

    def _file(self, controller: str, name: str) -> str | None:
        return f"{self.folders[controller]}/{name}" if controller in self.folders else None

    def _set(self, controller: str, name: str, value: int) -> None:
        files.write(f"{self.folders[controller]}/{name}", value)
