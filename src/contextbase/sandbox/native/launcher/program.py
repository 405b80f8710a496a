"""The launcher itself: a loop that forks a process for each order, before the order is known."""

import array  # noqa: F401 - passing descriptors needs it, and in our own root nothing more can be imported
import gc
import json
import os
import select
import signal
import socket
import sys
from pathlib import Path

from contextbase.sandbox.native.launcher import system
from contextbase.sandbox.native.launcher.errand import run_errand

__all__ = ["main"]

_LONGEST = 1 << 16
_CHANGED = (signal.SIGCHLD, signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ)
_ROOT = "/tmp"  # noqa: S108 - a mount point that every machine has; what is mounted there is seen by us alone


def main() -> None:
    """Arguments: the descriptor of the server's socket, then pairs of a path here and the path that it gets in a root
    of our own; none: the root stays."""
    channel = socket.socket(fileno=int(sys.argv[1]))
    paths = sys.argv[2:]
    system.hide_memory()
    system.reap_orphans()
    if paths:
        _make_root(list(zip(paths[::2], paths[1::2], strict=True)))
    woken, wakes = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakes, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)  # we end with the server's socket, and with nothing before it
    gc.freeze()  # what is never looked at is never copied for a child
    gc.disable()
    while True:
        ready, _, _ = select.select([channel.fileno(), woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _reap()
        if channel.fileno() in ready:
            text, descriptors, _, _ = socket.recv_fds(channel, _LONGEST, 1)
            if not text:
                return
            _start(channel, json.loads(text), descriptors[0])


def _start(channel: socket.socket, groups: list[str], control: int) -> None:
    try:
        if os.fork() == 0:
            try:
                channel.close()
                signal.set_wakeup_fd(-1)
                for number in _CHANGED:  # by us, or by Python when it starts
                    signal.signal(number, signal.SIG_DFL)
                run_errand(socket.socket(fileno=control), groups)
            except Exception as error:  # noqa: BLE001 - a defect of ours: the server's log has it, and the process ends
                sys.excepthook(type(error), error, error.__traceback__)
            finally:
                os._exit(1)  # whatever happens, this is no second launcher
    except OSError as error:
        os.write(2, f"launcher: {error}\n".encode())
    os.close(control)


def _reap() -> None:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return


def _make_root(paths: list[tuple[str, str]]) -> None:
    """A root that has these paths and nothing else. What is mounted on the machine is thus not kept busy by those who
    come from here, costs nothing to copy for each of them, and what the agents' account may not reach is out of reach
    for us as well."""
    os.umask(0o022)
    system.leave_mounts()
    links = {target: Path(source).readlink() for source, target in paths if source and Path(source).is_symlink()}
    sources = {target: os.open(source, os.O_PATH) for source, target in paths if source and target not in links}
    system.mount_tmpfs(_ROOT)  # from here on what is below it can be named by the open handles only
    for source, target in paths:
        place = Path(f"{_ROOT}{target}")
        if target in links:
            place.symlink_to(links[target])
            continue
        place.mkdir(parents=True, exist_ok=True)
        if target in sources:
            shown = f"/proc/self/fd/{sources[target]}"
            if source == target or not system.show(shown, str(place)):
                system.bind(shown, str(place))
            os.close(sources[target])
    system.enter_root(_ROOT)
