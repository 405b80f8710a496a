"""One order, carried out by a process of its own.

The process gets into a sandbox as follows: it opens what it needs of the machine, becomes the agents' account, joins
the namespaces of the sandbox's holder, and forks the process that will be the command. A program inside, which may be
hostile and has the same account, must gain nothing from what comes in:

- The errand itself never is in the sandbox's process namespace: from inside there is no way to name it.
- The forked process is, with our memory and descriptors, until it runs the command. All that time it is not dumpable,
  so /proc shows nothing of it (mem, fd, exe, cwd, environ) and it cannot be traced by who has no capability over the
  namespace it was started in. It closes everything before it runs the command.
- A script that names /proc/self/exe as its interpreter would run, and could then reopen, the program we are: the
  launcher is a sealed copy in memory that nobody can write to (see `client`).
"""

import fcntl
import json
import os
import select
import signal
import socket
import termios
from typing import Any, Final, NoReturn

from contextbase.sandbox.launcher import archives, system
from contextbase.sandbox.launcher.groups import Groups
from contextbase.sandbox.launcher.holder import Holder, HolderFailed
from contextbase.sandbox.launcher.order import Order, Refusal, Task
from contextbase.sandbox.launcher.processes import started_at

__all__ = ["run_errand"]

_CONNECT_SECONDS: Final = 10
_KILL_AGAIN: Final = 10  # milliseconds


class _Refused(Exception):
    def __init__(self, refusal: Refusal, why: str) -> None:
        super().__init__(why)
        self.refusal = refusal


def run_errand(descriptors: list[int]) -> NoReturn:
    """`descriptors`: the order, the socket to the server, and those that the order says it comes with."""
    order_file, control, *streams = descriptors
    order = Order.from_bytes(os.pread(order_file, os.fstat(order_file).st_size, 0))
    os.close(order_file)
    server = socket.socket(fileno=control)
    try:
        _Errand(order, server, streams).run()
    except _Refused as refused:
        _say(server, refused=refused.refusal, why=str(refused))
    except HolderFailed as failed:
        _say(server, refused=Refusal.MACHINE, why=str(failed))
    except OSError as error:
        about = f" ({error.filename})" if error.filename else ""
        _say(server, refused=Refusal.MACHINE, why=f"{error.strerror or error}{about}")
    os._exit(0)


def _say(server: socket.socket, *, descriptors: tuple[int, ...] = (), **values: Any) -> None:
    try:
        socket.send_fds(server, [json.dumps(values).encode()], list(descriptors))
    except (BrokenPipeError, ConnectionResetError):
        pass  # nobody is there to hear it, and what was to be ended is


class _Errand:
    def __init__(self, order: Order, server: socket.socket, streams: list[int]) -> None:
        self._order = order
        self._server = server
        self._streams = streams[:3]
        self._mount = streams[3] if len(streams) > 3 else None
        self._groups = Groups(order.groups, order.stoppers)
        self._holder: Holder | None = None

    def run(self) -> None:
        order = self._order
        if order.holder:
            self._holder = Holder.start(order, self._mount)
        process = order.process if self._holder is None else self._holder.process
        if os.geteuid() != order.uid:
            for stream in self._streams:  # so that /dev/stdout can be opened by its name
                os.fchown(stream, order.uid, order.gid)
        system.become(order.uid, order.gid)
        system.hide_memory()
        inside = self._opened(process)
        if order.task is Task.HOLD:
            _say(self._server, holder=process, started=started_at(process))
            return
        system.join_namespaces(inside)
        if order.task is Task.CONNECT:
            self._connect()
            return
        child, trouble = self._fork()
        self._tell_start(child, trouble)
        status, usage = self._wait(child, inside)
        if self._holder is not None:
            self._holder.end()
        _say(
            self._server,
            status=status,
            cpu_seconds=usage.ru_utime + usage.ru_stime,
            peak_memory=usage.ru_maxrss << 10,
        )

    def _opened(self, process: int) -> int:
        """A handle on the holder, which is surely the one that is meant: numbers are used again."""
        try:
            handle = os.pidfd_open(process)
        except ProcessLookupError:
            raise _Refused(Refusal.GONE, "the sandbox does not run any more") from None
        if self._order.started and started_at(process) != self._order.started:
            raise _Refused(Refusal.GONE, "the sandbox does not run any more")
        return handle

    def _connect(self) -> None:
        system.drop_capabilities()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_CONNECT_SECONDS)
            try:
                connection.connect(self._order.path)
            except OSError as error:
                raise _Refused(Refusal.NOBODY, error.strerror or str(error)) from None
            _say(self._server, descriptors=(connection.fileno(),), connected=True)

    def _fork(self) -> tuple[int, int]:
        """The command's process, and the pipe that says what went wrong before it ran the command."""
        trouble, trouble_end = os.pipe2(os.O_CLOEXEC)
        child = os.fork()
        if child == 0:
            try:
                self._become_command(trouble_end)
            except OSError as error:
                os.write(trouble_end, f"{error.strerror or error}".encode())
            finally:
                os._exit(126)
        os.close(trouble_end)
        for stream in self._streams:
            os.close(stream)
        self._streams = []
        return child, trouble

    def _become_command(self, trouble: int) -> None:
        order = self._order
        system.hide_memory()
        self._groups.join()
        os.setsid()
        if order.has_terminal:
            fcntl.ioctl(self._streams[0], termios.TIOCSCTTY, 0)
        trouble = _lined_up(self._streams, trouble)
        system.close_from(4)
        os.umask(0o022)
        if order.task is Task.RUN:
            try:
                os.chdir(order.path)
            except OSError as error:
                os.write(trouble, b"folder:" + (error.strerror or str(error)).encode())
                os._exit(126)
        system.set_limits(dict(order.limits))
        system.drop_capabilities()
        system.set_death_signal(signal.SIGKILL)
        system.forbid_new_privileges()
        if order.filter:
            system.set_filter(bytes.fromhex(order.filter))
        if order.task is Task.RUN:
            _run_command(order, trouble)
        os.close(trouble)
        os._exit(archives.unpack(0, order.path) if order.task is Task.UNPACK else archives.pack(1, order.path))

    def _tell_start(self, child: int, trouble: int) -> None:
        said = b"".join(iter(lambda: os.read(trouble, 4096), b""))
        os.close(trouble)
        if not said:
            _say(self._server, running=True)
            return
        os.waitpid(child, 0)  # a sandbox ends when the last of it was waited for
        if self._holder is not None:
            self._holder.end()
        if said.startswith(b"folder:"):
            raise _Refused(Refusal.FOLDER, said.removeprefix(b"folder:").decode())
        raise _Refused(Refusal.MACHINE, said.decode(errors="replace"))

    def _wait(self, child: int, inside: int) -> tuple[int, Any]:
        """Until it ended. The server's word, or its end, ends it, and what it started with it."""
        handle = os.pidfd_open(child)
        waiting = select.poll()
        for descriptor in (handle, self._server.fileno()):
            waiting.register(descriptor, select.POLLIN)
        kills = False
        while True:
            ready = {descriptor for descriptor, _ in waiting.poll(_KILL_AGAIN if kills else None)}
            if self._server.fileno() in ready:
                kills = True
                waiting.unregister(self._server)
            if kills:
                if self._holder is not None:
                    signal.pidfd_send_signal(inside, signal.SIGKILL)  # with the first process all others end
                self._groups.kill()
                signal.pidfd_send_signal(handle, signal.SIGKILL)
            if handle in ready:
                _, status, usage = os.wait4(child, 0)
                if kills and self._holder is None:
                    self._groups.kill_to_the_last()
                return status, usage


def _lined_up(streams: list[int], trouble: int) -> int:
    """Have the three streams as 0, 1 and 2 and the pipe as 3."""
    spare = [fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, 16) for descriptor in (*streams, trouble)]
    for target, descriptor in enumerate(spare):
        os.dup2(descriptor, target, inheritable=target < 3)
    return 3


def _run_command(order: Order, trouble: int) -> NoReturn:
    del trouble  # closes itself when the program is run
    program = order.argv[0]
    try:
        os.execvpe(program, list(order.argv), dict(order.environment))  # noqa: S606 - what this is for
    except OSError as error:
        os.write(2, f"{program}: {error.strerror}\n".encode(errors="surrogateescape"))
        os._exit(127 if isinstance(error, FileNotFoundError | NotADirectoryError) else 126)
