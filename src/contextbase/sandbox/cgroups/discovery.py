"""Where the control groups of this machine are, and what is done with any of them."""

import asyncio
import contextlib
import errno
import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from contextbase.errors import Conflict
from contextbase.limits import ResourceLimits
from contextbase.sandbox.cgroups import files
from contextbase.sandbox.cgroups.model import CONTROLLERS, NO_LIMITS, ControlGroup
from contextbase.sandbox.cgroups.separate import SeparateGroups
from contextbase.sandbox.cgroups.unified import UNIFIED, UnifiedGroup

__all__ = ["NO_MEMORY", "find_groups", "group_at", "group_named", "kill_group", "make_leaf", "remove_group"]

NO_MEMORY: Final = (
    "The sandbox has no memory left for a command: what is in its /tmp and its home counts, too. End the sandbox, and "
    "make a new one."
)
_TRIES, _PAUSE = 500, 0.01


def group_at(place: dict[str, str]) -> ControlGroup:
    """One that was made before, by this process or another."""
    if UNIFIED in place:
        return UnifiedGroup(folder=Path(place[UNIFIED]))
    return SeparateGroups(folders={controller: Path(folder) for controller, folder in place.items()})


def kill_group(group: ControlGroup) -> None:
    """All that is in it now."""
    for file, text in group.stoppers:
        with contextlib.suppress(FileNotFoundError):
            files.write(file, text)
    for process in group.processes():
        with contextlib.suppress(ProcessLookupError):
            os.kill(process, signal.SIGKILL)


def make_leaf(leaf: ControlGroup) -> None:
    """A group below a sandbox's. Raises `Conflict` if the sandbox is too full even for that: the kernel counts a group
    as memory of the one above."""
    try:
        leaf.make(NO_LIMITS)
    except OSError as error:
        leaf.remove()
        if error.errno == errno.ENOMEM:
            raise Conflict(NO_MEMORY) from None
        raise


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
            if controller in places and controller in (*CONTROLLERS, "cpuacct"):
                root, place = places[controller]
                folders[controller] = Path(place + ("" if path == "/" else path.removeprefix(root.rstrip("/"))))
    return SeparateGroups(folders=folders) if set(CONTROLLERS) <= set(folders) else None


def _unified(own: str, mounts: str) -> UnifiedGroup | None:
    path = next((line[3:] for line in own.splitlines() if line.startswith("0::")), None)
    for root, place, kind, _ in _mounted(mounts):
        if kind == "cgroup2" and path is not None:
            top = Path(place + ("" if path == "/" else path.removeprefix(root.rstrip("/"))))
            controllers = top / "cgroup.controllers"
            has = controllers.read_text(encoding="ascii").split() if controllers.exists() else []
            if set(CONTROLLERS) <= set(has):
                return UnifiedGroup(folder=top)
    return None


def _mounted(mounts: str) -> Iterator[tuple[str, str, str, str]]:
    for line in mounts.splitlines():
        before, _, after = line.partition(" - ")
        fields = before.split()
        kind, _, options = after.split(" ", 2)
        yield fields[3], fields[4].replace("\\040", " "), kind, options
