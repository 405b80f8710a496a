"""A sandbox's first process: bubblewrap with a program in it that waits."""

import json
import os
import select
import signal
import time
from dataclasses import dataclass
from typing import Final, NoReturn

from contextbase.sandbox.launcher import system
from contextbase.sandbox.launcher.order import Order, Task

__all__ = ["INFO_DESCRIPTOR", "FILTER_DESCRIPTOR", "WAITING_PROGRAM", "Holder", "HolderFailed"]

INFO_DESCRIPTOR, FILTER_DESCRIPTOR = 3, 4
WAITING_PROGRAM: Final = "/bin/cat"
"""Reads from a pipe that it is the writer of, too: it waits for ever. What we wrote there before comes back through it
when the sandbox is made: then it is ready."""

_READY: Final = b"ready\n"
_SECONDS: Final = 30


class HolderFailed(Exception):
    """No sandbox was made; the message says why."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Holder:
    process: int  # the first one inside: when it ends, everything inside does
    handle: int  # the same, and no other that gets its number later
    bubblewrap: int  # its parent, our child

    @classmethod
    def start(cls, order: Order, mount: int | None) -> "Holder":
        info, info_end = os.pipe2(os.O_CLOEXEC)
        said, said_end = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
        if child == 0:
            try:
                _become_bubblewrap(order, mount, info_end, said_end)
            except OSError as error:
                about = f" ({error.filename})" if error.filename else ""
                os.write(said_end, f"{error.strerror or error}{about}".encode())
            finally:
                os._exit(1)
        os.close(info_end)
        os.close(said_end)
        try:
            process = _wait_until_ready(info, said)
        except HolderFailed:
            os.kill(child, signal.SIGKILL)
            os.waitpid(child, 0)
            raise
        finally:
            os.close(info)
            os.close(said)
        return cls(process=process, handle=os.pidfd_open(process), bubblewrap=child)

    def end(self) -> None:
        """With everything inside; returns when nothing of it is there."""
        try:
            signal.pidfd_send_signal(self.handle, signal.SIGKILL)
        except ProcessLookupError:
            pass  # it went by itself
        os.waitpid(self.bubblewrap, 0)


def _become_bubblewrap(order: Order, mount: int | None, info: int, said: int) -> NoReturn:
    system.hide_memory()
    for path in order.holder_groups:
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        os.write(descriptor, b"0")
        os.close(descriptor)
    os.setsid()
    if mount is not None and order.mount_at is not None:
        system.leave_mounts()
        system.attach_mount(mount, order.mount_at)
    reads, writes = os.pipe()
    os.write(writes, _READY)
    endless = os.open(f"/proc/self/fd/{reads}", os.O_RDWR)
    program = os.memfd_create("filter", 0)
    os.write(program, bytes.fromhex(order.filter))
    os.lseek(program, 0, os.SEEK_SET)
    wanted = (endless, said, said, info, program)
    spare = [os.dup(descriptor) for descriptor in wanted]
    while min(spare) < len(wanted):
        spare = [os.dup(descriptor) for descriptor in spare]
    for target, descriptor in enumerate(spare):
        os.dup2(descriptor, target, inheritable=True)
    system.close_from(len(wanted))
    system.become(order.uid, order.gid)
    system.set_limits({"RLIMIT_CORE": 0})
    system.forbid_new_privileges()
    os.chdir("/")
    os.execve(order.holder[0], list(order.holder), {})


def _wait_until_ready(info: int, said: int) -> int:
    """The number of the first process inside."""
    ends = time.monotonic() + _SECONDS
    text = b""
    while not text.startswith(_READY):
        left = ends - time.monotonic()
        if not select.select([said], [], [], max(0, left))[0]:
            raise HolderFailed(f"bubblewrap did not make a sandbox within {_SECONDS} seconds")
        piece = os.read(said, 4096)
        if not piece:
            raise HolderFailed(text.decode(errors="replace").strip() or "bubblewrap ended without a word")
        text += piece
    process: int = json.loads(os.read(info, 4096))["child-pid"]
    return process
