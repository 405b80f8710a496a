"""One order, carried out by a process of its own.

It opens what it needs of the machine, becomes the agents' account, starts a holder if it is to have a sandbox of its
own, joins the holder's namespaces, gives up all that a command must not have, and starts the command. A program inside,
which may be hostile and has the same account, must gain nothing from what comes in:

- The errand itself never is in the sandbox's process namespace: from inside there is no way to name it.
- What it starts is, and shares our memory and descriptors until it runs the command's program. All that time it is not
  dumpable: /proc shows nothing of it (mem, fd, exe, cwd, environ), and who has no capability over the namespace it was
  started in cannot trace it. All descriptors but its own close themselves when a program is run: the holder's, which
  those inside can make do what they like, and the command's.
- A script that names /proc/self/exe as its interpreter would run, and could then reopen, the program we are: the
  launcher is a sealed copy in memory that nobody can write to (see `client`).

Programs are started without copying this process: that would cost more than all the rest.
"""

import contextlib
import errno
import json
import os
import select
import signal
import socket
import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final, NoReturn

from contextbase.sandbox.native.launcher import archives, system, terminals
from contextbase.sandbox.native.launcher.descendants import end_descendants
from contextbase.sandbox.native.launcher.groups import Groups, join_groups
from contextbase.sandbox.native.launcher.holder import HolderFailed, SandboxHolder
from contextbase.sandbox.native.launcher.order import Order, StartRefusal, Task
from contextbase.sandbox.native.launcher.processes import started_at

__all__ = ["run_errand"]

_CONNECT_SECONDS: Final = 10
_MOST_DESCRIPTORS: Final = 16
_KILL_AGAIN: Final = 10  # milliseconds
_LONGEST_END: Final = 1  # second
_REHEARSAL: Final = Order(task=Task.RUN, uid=1, gid=1).as_bytes()
_LONGEST_NAME: Final = 256  # that is told of a program: nobody reads yet, and a pipe that is full would hold us up
_NOT_FOUND, _NOT_RUN = 127, 126  # as a shell has it


class _Refused(Exception):
    def __init__(self, refusal: StartRefusal, why: str) -> None:
        super().__init__(why)
        self.refusal = refusal


def run_errand(server: socket.socket, groups: list[str]) -> NoReturn:
    """Join these groups, wait for the server's order, carry it out."""
    try:
        join_groups(groups)
        Order.from_bytes(_REHEARSAL)  # memory that we share with the launcher is copied when it is first used: now
        _, descriptors, _, _ = socket.recv_fds(server, 1, _MOST_DESCRIPTORS)
        if descriptors:  # otherwise we are not needed
            order_file, *others = descriptors
            order = Order.from_bytes(os.pread(order_file, os.fstat(order_file).st_size, 0))
            os.close(order_file)
            _Errand(order, server, others).run()
    except _Refused as refused:
        _say(server, refused=refused.refusal, why=str(refused))
    except HolderFailed as failed:
        _say(server, refused=StartRefusal.MACHINE, why=str(failed))
    except OSError as error:
        about = f" ({error.filename})" if error.filename else ""
        _say(server, refused=StartRefusal.MACHINE, why=f"{error.strerror or error}{about}")
    os._exit(0)


def _say(server: socket.socket, *, descriptors: Sequence[int] = (), **values: Any) -> None:
    with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # nobody is there to hear it
        socket.send_fds(server, [json.dumps(values).encode()], descriptors)


class _Errand:
    def __init__(self, order: Order, server: socket.socket, descriptors: list[int]) -> None:
        self._order = order
        self._server = server
        self._streams = descriptors[:3]
        self._mounts = descriptors[3:]
        self._groups = Groups(order.groups, order.stoppers)
        self._filter = bytes.fromhex(order.filter)
        self._joined: int | None = None  # the handle of a holder that others made, and may end at any time

    def run(self) -> None:
        order = self._order
        self._become_agent()
        if order.is_outside:
            self._run_outside()
            return
        holder = SandboxHolder.start(order.holder, self._filter) if order.holder else None
        process = order.process if holder is None else holder.process
        if holder is None:
            handle = self._joined = self._opened(process)
        else:
            handle = holder.handle
        if order.task is Task.HOLD:
            _say(self._server, holder=process, started=started_at(process))
            return
        ended: dict[str, Any] | None = None
        try:
            system.join_namespaces(handle)
            if order.task is Task.CONNECT:
                self._connect()
            else:
                ended = self._run(handle if holder is not None else None)
        except OSError as error:
            if self._is_sandbox_gone(error):
                raise _Refused(StartRefusal.GONE, "the sandbox ended meanwhile") from None
            raise
        finally:
            if holder is not None:
                holder.end()
        if ended is not None:
            _say(self._server, **ended)

    def _run_outside(self) -> None:
        """Without a sandbox, whose end would be the end of all in it, we see ourselves to what the command starts."""
        if self._order.task is Task.CONNECT:
            self._connect()
            return
        system.reap_orphans()
        try:
            ended = self._run(None)
        finally:
            end_descendants()
        _say(self._server, **ended)

    def _become_agent(self) -> None:
        order = self._order
        system.close_on_exec_from(3)  # a holder is somebody inside, too
        if os.geteuid() != order.uid:
            for stream in self._streams:
                if stat.S_ISFIFO(os.fstat(stream).st_mode):  # never the machine's /dev/null
                    os.fchown(stream, order.uid, order.gid)  # so that /dev/stdout can be opened by its name
        if order.mounts:
            system.leave_mounts()
        for mount, target in zip(self._mounts, order.mounts, strict=True):
            Path(target).mkdir(parents=True, exist_ok=True)
            system.attach_mount(mount, target)
            os.close(mount)
        system.become(order.uid, order.gid)
        system.hide_memory()
        system.forbid_new_privileges()
        os.umask(0o022)

    def _opened(self, process: int) -> int:
        """A handle on the holder, which is surely the one that is meant: numbers are used again."""
        with contextlib.suppress(ProcessLookupError):
            handle = os.pidfd_open(process)
            if started_at(process) == self._order.started:
                return handle
        raise _Refused(StartRefusal.GONE, "the sandbox does not run any more")

    def _is_sandbox_gone(self, error: OSError) -> bool:
        """While a sandbox's first process ends, the kernel finds no such process, or has no memory for another one."""
        if self._joined is None or error.errno not in (errno.ESRCH, errno.ENOMEM):
            return False
        return bool(select.select([self._joined], [], [], _LONGEST_END)[0])

    def _connect(self) -> None:
        system.drop_capabilities()
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
            connection.settimeout(_CONNECT_SECONDS)
            folder, _, name = self._order.path.rpartition("/")
            try:
                os.chdir(folder or "/")  # by its name alone: the path of a socket may not be long
                connection.connect(name)
            except OSError as error:
                raise _Refused(StartRefusal.NOBODY, error.strerror or str(error)) from None
            _say(self._server, descriptors=(connection.fileno(),), connected=True)

    def _run(self, first: int | None) -> dict[str, Any]:
        """Run the task's process to its end. `first`: the handle of the first one inside, when it is ours to end."""
        order = self._order
        ours, name = terminals.make(*order.terminal) if order.terminal else (None, None)
        self._confine()
        try:
            child = self._spawn(name) if order.task is Task.RUN else self._fork()
        except OSError as error:
            if self._is_sandbox_gone(error):
                raise
            code = _NOT_FOUND if isinstance(error, FileNotFoundError | NotADirectoryError) else _NOT_RUN
            self._complain(f"{order.argv[0][:_LONGEST_NAME]}: {error.strerror}\n", name)
            _say(self._server, descriptors=() if ours is None else (ours,), running=True)
            return {"status": code << 8}
        for stream in self._streams:
            os.close(stream)
        _say(self._server, descriptors=() if ours is None else (ours,), running=True)
        if ours is not None:
            os.close(ours)
        status, usage = self._wait(child, first)
        cpu_seconds = usage.ru_utime + usage.ru_stime
        return {"status": status, "cpu_seconds": cpu_seconds, "peak_memory": usage.ru_maxrss << 10}

    def _confine(self) -> None:
        """Give up what the command must not have; it takes over from us."""
        order = self._order
        if order.task is Task.RUN:
            try:
                os.chdir(order.path)
            except OSError as error:
                raise _Refused(StartRefusal.FOLDER, error.strerror or str(error)) from None
        self._groups.join()
        system.set_limits(dict(order.limits))
        system.drop_capabilities()
        if self._filter:
            system.set_filter(self._filter)

    def _spawn(self, terminal: str | None) -> int:
        order = self._order
        actions: list[Any] = [(os.POSIX_SPAWN_DUP2, stream, place) for place, stream in enumerate(self._streams)]
        if terminal is not None:  # the first terminal that the leader of a session opens is its own
            actions = [(os.POSIX_SPAWN_OPEN, 0, terminal, os.O_RDWR, 0)]
            actions += [(os.POSIX_SPAWN_DUP2, 0, place) for place in (1, 2)]
        program = _found(order.argv[0], order.environment.get("PATH", ""))
        return os.posix_spawn(program, list(order.argv), order.environment, file_actions=actions, setsid=True)

    def _fork(self) -> int:
        child = os.fork()
        if child:
            return child
        try:
            os.setsid()
            for place, stream in enumerate(self._streams):
                os.dup2(stream, place)
            system.close_from(3)
            work = archives.unpack if self._order.task is Task.UNPACK else archives.pack
            os._exit(work(self._order.path))
        finally:
            os._exit(_NOT_RUN)

    def _complain(self, text: str, terminal: str | None) -> None:
        descriptor = self._streams[2] if terminal is None else os.open(terminal, os.O_WRONLY | os.O_NOCTTY)
        os.write(descriptor, text.encode(errors="surrogateescape"))

    def _wait(self, child: int, first: int | None) -> tuple[int, Any]:
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
                if first is not None:
                    _kill(first)  # with the first process all others end
                self._groups.kill()
                _kill(handle)
            if handle in ready:
                _, status, usage = os.wait4(child, 0)
                if kills:
                    self._groups.kill_to_the_last()
                return status, usage


def _kill(handle: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        signal.pidfd_send_signal(handle, signal.SIGKILL)


def _found(program: str, path: str) -> str:
    if "/" in program:
        return program
    for folder in path.split(":"):
        candidate = f"{folder or '.'}/{program}"
        if os.access(candidate, os.X_OK) and not Path(candidate).is_dir():
            return candidate
    raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), program)
