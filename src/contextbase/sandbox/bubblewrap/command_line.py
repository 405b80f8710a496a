"""The command line of bubblewrap that makes a sandbox."""

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path, PurePosixPath
from typing import Final

from contextbase.sandbox.model import HOME, WORKSPACE, SandboxSpec
from contextbase.sandbox.native.launcher.holder import FILTER_DESCRIPTOR, INFO_DESCRIPTOR, WAITING_COMMAND
from contextbase.sandbox.seccomp import seccomp_filter

__all__ = ["VisibleMachine", "bubblewrap_line"]

_SYSTEM_FOLDERS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32")
_ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": str(HOME),
    "USER": "agent",
    "LOGNAME": "agent",
    "LANG": "C.UTF-8",
}
_DEFAULT_SIZE: Final = 1 << 30
_RUN_SIZE: Final = 16 << 20
_BINDS: Final = "/binds"  # in the launcher's own root


@dataclass(frozen=True, kw_only=True, slots=True)
class VisibleMachine:
    """What sandboxes see of this machine. With `has_own_root` the launcher has a root of its own, in which the
    workspace is mounted again for each of them: the agents' account could not get to it by its real path."""

    program: str  # bubblewrap
    options: frozenset[str]  # those it knows
    etc: Path  # the folder that is /etc inside
    extra_read_only: tuple[Path, ...]
    has_own_root: bool

    @property
    def launcher_root(self) -> tuple[tuple[str, str], ...]:
        if not self.has_own_root:
            return ()
        there = [folder for folder in (*_SYSTEM_FOLDERS, "/proc", "/dev", "/sys/fs/cgroup") if os.path.lexists(folder)]
        extra = [str(folder) for folder in self.extra_read_only]
        if not self.program.startswith(("/usr/", "/bin/")):
            extra.append(str(Path(self.program).parent))
        empty = [("", str(WORKSPACE)), ("", "/tmp")]  # noqa: S108 - where bubblewrap builds
        return (*((path, path) for path in (*there, *extra)), (str(self.etc), "/etc"), *empty)

    def mounts(self, spec: SandboxSpec, folder: Path) -> list[tuple[Path, str]]:
        if not self.has_own_root:
            return []
        return [(folder, str(WORKSPACE)), *((source, f"{_BINDS}/{at}") for at, source in enumerate(_bound(spec)))]

    def source_of(self, spec: SandboxSpec, folder: Path) -> str:
        """Where bubblewrap finds a folder that is bound beside the workspace."""
        return f"{_BINDS}/{_bound(spec).index(folder)}" if self.has_own_root else str(folder)

    @property
    def source_of_etc(self) -> str:
        return "/etc" if self.has_own_root else str(self.etc)

    def holder_line(self, spec: SandboxSpec, folder: Path, *, ends_with_parent: bool) -> list[str]:
        descriptors = ["--as-pid-1", "--info-fd", str(INFO_DESCRIPTOR), "--seccomp", str(FILTER_DESCRIPTOR)]
        ends = ["--die-with-parent"] if ends_with_parent else []
        return bubblewrap_line(self, spec, folder, command=WAITING_COMMAND, options=[*descriptors, *ends])

    def filter(self, spec: SandboxSpec) -> bytes:
        return seccomp_filter(spec.network)

    def path(self, spec: SandboxSpec, inside: PurePosixPath) -> str:
        del spec  # it is at the same place in every sandbox
        return str(WORKSPACE / inside)

    def environment(self, spec: SandboxSpec) -> Mapping[str, str]:
        del spec
        return _ENVIRONMENT


def _bound(spec: SandboxSpec) -> list[Path]:
    """Folders beside the workspace."""
    return sorted({source for source, _ in spec.read_only} | ({spec.home} if spec.home is not None else set()))


def bubblewrap_line(
    machine: VisibleMachine, spec: SandboxSpec, folder: Path, *, command: Sequence[str], options: Sequence[str] = ()
) -> list[str]:
    size = str(min(spec.limits.max_memory or _DEFAULT_SIZE, spec.limits.max_disk or _DEFAULT_SIZE))
    line = [machine.program, "--unshare-user", "--unshare-pid", "--unshare-net", "--unshare-ipc", "--unshare-uts"]
    line += ["--unshare-cgroup-try", "--hostname", "sandbox", "--cap-drop", "ALL", *options]
    if "--disable-userns" in machine.options:
        line.append("--disable-userns")
    line += _system_folders()
    line += ["--ro-bind", machine.source_of_etc, "/etc", "--proc", "/proc", "--dev", "/dev"]
    for mode, most, place in (
        ("1777", size, "/dev/shm"),  # noqa: S108 - inside
        ("1777", size, "/tmp"),  # noqa: S108 - inside
        ("0755", str(_RUN_SIZE), "/run"),
        ("0755", size, str(HOME)),
    ):
        if place != str(HOME) or spec.home is None:
            line += ["--perms", mode, "--size", most, "--tmpfs", place]
    if spec.home is not None:
        line += ["--bind", machine.source_of(spec, spec.home), str(HOME)]
    line += ["--perms", "0755", "--dir", "/var", "--symlink", "/tmp", "/var/tmp", "--symlink", "/run", "/var/run"]  # noqa: S108 - inside
    for extra in machine.extra_read_only:
        line += ["--ro-bind", str(extra), str(extra)]
    for source, target in spec.read_only:
        line += ["--ro-bind", machine.source_of(spec, source), str(target)]
    workspace = str(WORKSPACE) if machine.has_own_root else str(folder)
    line += ["--ro-bind" if spec.is_read_only else "--bind", workspace, str(WORKSPACE)]
    line += ["--remount-ro", "/dev", "--remount-ro", "/", "--chdir", str(WORKSPACE)]
    return [*line, "--", *command]


@cache
def _system_folders() -> list[str]:
    """As this machine has them: some are folders, some are links to others."""
    line = []
    for folder in map(Path, _SYSTEM_FOLDERS):
        if folder.is_symlink():
            line += ["--symlink", str(folder.readlink()), str(folder)]
        elif folder.is_dir():
            line += ["--ro-bind", str(folder), str(folder)]
    return line
