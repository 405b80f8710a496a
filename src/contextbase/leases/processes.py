"""Which process this is, and whether another one is still there."""

import os
import socket
from functools import lru_cache
from pathlib import Path

from contextbase.leases.model import LeaseHolder

__all__ = ["is_gone", "this_process"]


def this_process() -> LeaseHolder:
    return _process(os.getpid())


@lru_cache(maxsize=1)
def _process(process_id: int) -> LeaseHolder:
    return LeaseHolder(node=_node(), boot=_boot(), process_id=process_id, started=_started(process_id) or 0)


def is_gone(holder: LeaseHolder, *, seen_from: LeaseHolder) -> bool:
    """Whether the process has surely ended. Of another node nobody here can tell: there the heartbeat decides."""
    if holder.node != seen_from.node:
        return False
    return holder.boot != seen_from.boot or _started(holder.process_id) != holder.started


def _node() -> str:
    """A container has a host name of its own, or at least its own process numbers."""
    try:
        return f"{socket.gethostname()} {Path('/proc/self/ns/pid').readlink()}"
    except FileNotFoundError:  # not Linux
        return socket.gethostname()


def _boot() -> str:
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except FileNotFoundError:  # not Linux: after a restart of the machine, leases last until they expire
        return ""


def _started(process_id: int) -> int | None:
    """When it started, in ticks since the machine did; None when there is no such process, or only its remains."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return None if Path("/proc/self").exists() else _started_without_proc(process_id)
    fields = status[status.rindex(b")") + 2 :].split()  # the name before it may hold anything
    return None if fields[0] in (b"Z", b"X") else int(fields[19])


def _started_without_proc(process_id: int) -> int | None:
    try:
        os.kill(process_id, 0)
    except ProcessLookupError:
        return None
    except PermissionError:  # somebody else's, and there
        return 0
    return 0
