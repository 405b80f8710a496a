"""A command that runs in a container, and how it ends."""

import asyncio
import signal
import struct
import sys
import time
from collections import deque
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine
from dataclasses import dataclass
from typing import Final

from contextbase.errors import Conflict, ContextbaseError, InvalidInput, NotFound, Unavailable
from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox.cgroups import ControlGroup, Usage
from contextbase.sandbox.docker.connection import Hijacked
from contextbase.sandbox.docker.engine import Engine
from contextbase.sandbox.model import WORKSPACE, Command, CommandOutcome, Output, OutputStream, TerminalSize

__all__ = ["DockerExecution", "Surroundings", "entering"]

# The shell says its process id, which is the command's too, and becomes the command. Docker has no other way to tell
# it, and the id is the only way to end one command of several.
_ENTER: Final = 'cd -- "$1" 2>/dev/null || { echo -; exit 126; }; shift; unset OLDPWD; echo $$; exec "$@"'
_ENTER_TERMINAL: Final = f'stty rows "$1" cols "$2" 2>/dev/null; shift 2; {_ENTER}'
_LONGEST_GREETING: Final = 4096
_FRAME: Final = struct.Struct(">BxxxL")
_PIECE: Final = 64 << 10
_AHEAD: Final = 256 << 10  # bytes read before anybody wants them: what a short command writes fits
_END_OF_INPUT: Final = b"\x04\x04"  # at a terminal: once for what stands in the line, once for the end
_BEGIN_SECONDS: Final = 60  # an agent can halt our shell inside, but not us
_LONGEST_PAUSE: Final = 0.5  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class Surroundings:
    """What an execution asks of the sandbox it runs in."""

    kill: Callable[[int], Coroutine[None, None, None]]  # the command with this process id inside
    ended: Callable[[], Awaitable[None]]  # called once, after the last other call
    watch: Callable[[], Awaitable[Limit]] | None  # returns when the command must not go on
    group: ControlGroup | None  # of all that runs in the sandbox, if it can be seen
    is_alone: bool  # nothing else runs in it
    refused: Callable[[], Awaitable[tuple[str, ...]]]  # processes, at its end: whose leftovers were ended for that
    leftovers_of: tuple[str, ...] = ()  # commands whose leftovers were ended before it began


def entering(command: Command) -> list[str]:
    """The argv that starts it in its folder."""
    script, size = _ENTER, []
    if command.terminal is not None:
        script, size = _ENTER_TERMINAL, [str(command.terminal.rows), str(command.terminal.columns)]
    return ["/bin/sh", "-c", script, "sh", *size, str(WORKSPACE / command.cwd), *command.argv]


class DockerExecution:
    def __init__(
        self,
        *,
        engine: Engine,
        exec_id: str,
        connection: Hijacked,
        command: Command,
        limits: ResourceLimits,
        surroundings: Surroundings,
    ) -> None:
        self._engine = engine
        self._exec_id = exec_id
        self._connection = connection
        self._command = command
        self._limits = limits
        self._surroundings = surroundings
        self._started = time.monotonic()
        self._used_before = self._used()
        self._pid = 0
        self._backlog = _Backlog()
        self._is_read = False
        self._waiting = 0
        self._stopped_by: Limit | None = None
        self._was_killed = False
        self._killing: asyncio.Task[None] | None = None
        self._end: asyncio.Task[CommandOutcome] | None = None
        self._watchers: list[asyncio.Task[None]] = []

    async def begin(self) -> None:
        """Until the command itself runs; raises when it cannot."""
        try:
            async with asyncio.timeout(_BEGIN_SECONDS):
                rest = await self._greeted()
        except BaseException as error:
            await self._connection.close()
            await self._surroundings.ended()
            if isinstance(error, TimeoutError):
                raise Unavailable("The command did not begin: something in the sandbox holds it up.") from error
            raise
        if self._command.terminal is not None and not self._command.has_input:
            self._connection.writer.write(_END_OF_INPUT)
        self._end = asyncio.create_task(self._until_end(rest))
        self._end.add_done_callback(lambda end: end.cancelled() or end.exception())  # told by `wait`, if anybody asks
        timeouts = [seconds for seconds in (self._command.timeout, self._limits.max_execution_time) if seconds]
        if timeouts:
            self._watchers.append(asyncio.create_task(self._watch_clock(min(timeouts))))
        if self._surroundings.watch is not None:
            self._watchers.append(asyncio.create_task(self._watch(self._surroundings.watch)))

    async def output(self) -> AsyncGenerator[Output, None]:
        if self._is_read:
            raise Conflict("Somebody reads the output of this command already.")
        self._is_read = True
        self._decide_overflow()
        try:
            while (piece := await self._backlog.take()) is not None:
                yield piece
        finally:
            self._is_read = False
            self._decide_overflow()

    async def write(self, data: bytes) -> None:
        writer = self._connection.writer
        if not self._command.has_input:
            raise Conflict("This command was started without an input.")
        if self._ended or writer.is_closing():
            raise Conflict("This command does not read its input any more.")
        try:
            writer.write(data)
            draining = asyncio.ensure_future(writer.drain())
            await asyncio.wait((draining, self._outcome), return_when=asyncio.FIRST_COMPLETED)
            if not draining.done():
                draining.cancel()
                raise Conflict("This command ended before it read its input.")
            await draining
        except (OSError, RuntimeError) as error:  # RuntimeError: after end_input
            raise Conflict("This command does not read its input any more.") from error

    async def end_input(self) -> None:
        if self._ended or not self._command.has_input:
            return
        if self._command.terminal is not None:
            await self.write(_END_OF_INPUT)
        else:
            self._connection.end_input()

    async def resize(self, size: TerminalSize) -> None:
        if self._command.terminal is None:
            raise Conflict("This command has no terminal.")
        if self._ended:
            return
        try:
            await self._engine.resize(self._exec_id, rows=size.rows, columns=size.columns)
        except ContextbaseError:
            if await self._engine.exit_code(self._exec_id) is None:
                raise

    async def kill(self) -> None:
        if self._ended:
            return
        if self._killing is None:
            self._was_killed = True
            self._decide_overflow()
            self._killing = asyncio.create_task(self._surroundings.kill(self._pid))
        await asyncio.shield(self._killing)

    async def wait(self) -> CommandOutcome:
        self._waiting += 1
        self._decide_overflow()
        try:
            return await asyncio.shield(self._outcome)
        finally:
            self._waiting -= 1
            self._decide_overflow()

    def when_ended(self, told: Callable[[], object]) -> None:
        self._outcome.add_done_callback(lambda _: told())

    def _decide_overflow(self) -> None:
        self._backlog.set_overflow(self._was_killed or (self._waiting > 0 and not self._is_read))

    @property
    def _outcome(self) -> "asyncio.Task[CommandOutcome]":
        if self._end is None:
            raise RuntimeError("The execution did not begin.")
        return self._end

    @property
    def _ended(self) -> bool:
        return self._outcome.done()

    async def _greeted(self) -> list[Output]:
        """Read the process id; what came with it is the command's."""
        greeting, pieces = b"", []
        while b"\n" not in greeting and (piece := await self._next()) is not None:
            if piece.stream is not OutputStream.STDOUT:
                pieces.append(piece)
                continue
            greeting += piece.data
            if len(greeting) > _LONGEST_GREETING:
                break
        line, _, rest = greeting.partition(b"\n")
        if line.strip() == b"-":
            raise InvalidInput(f"There is no folder {str(self._command.cwd)!r} in the sandbox that can be entered.")
        if not line.strip().isdigit():
            said = (greeting + b"".join(piece.data for piece in pieces)).decode(errors="replace").strip()
            if "not running" in said or said.endswith("not found: not found"):  # the container; its task
                raise Conflict("The sandbox does not run.")
            raise Unavailable(f"The Docker engine could not start the command: {said[:500]}")
        self._pid = int(line)
        return [Output(stream=OutputStream.STDOUT, data=rest), *pieces] if rest else pieces

    async def _until_end(self, first: list[Output]) -> CommandOutcome:
        room = sys.maxsize if self._limits.max_output is None else self._limits.max_output
        try:
            while (piece := first.pop(0) if first else await self._next()) is not None:
                if room > 0:
                    await self._backlog.add(Output(stream=piece.stream, data=piece.data[:room]))
                room -= len(piece.data)
                if room < 0:
                    self._stop(Limit.OUTPUT)
            return await self._concluded()
        finally:
            for watcher in self._watchers:
                watcher.cancel()
            self._backlog.end()
            if self._killing is not None:
                await asyncio.gather(self._killing, return_exceptions=True)
            await self._connection.close()
            await self._surroundings.ended()

    async def _concluded(self) -> CommandOutcome:
        """Docker tells a signal as 128 + its number, as a shell does, so that it is taken for one only when we sent it,
        or the kernel did for want of memory."""
        code = await self._exit_code()
        seconds = time.monotonic() - self._started
        before, now = self._used_before, self._used()
        stopped_by = self._stopped_by
        if stopped_by is None and code != 0 and now.killed_for_memory > before.killed_for_memory:
            stopped_by = Limit.MEMORY
        if stopped_by is None and code == 128 + signal.SIGXFSZ:  # a file as large as all it may write
            stopped_by = Limit.DISK
        is_killed = code == 128 + signal.SIGKILL and (self._was_killed or stopped_by is not None)
        is_alone = self._surroundings.is_alone
        forks_refused = now.refused_forks > before.refused_forks
        leftovers_of = self._surroundings.leftovers_of
        if forks_refused and not is_alone:
            leftovers_of += await self._surroundings.refused()
        return CommandOutcome(
            exit_code=None if is_killed else code,
            signal=signal.SIGKILL if is_killed else None,
            stopped_by=stopped_by,
            forks_refused=forks_refused,
            leftovers_of=leftovers_of,
            slowed_down=now.throttled > before.throttled,
            seconds=seconds,
            cpu_seconds=now.cpu_seconds if is_alone else None,
            peak_memory=now.peak_memory if is_alone else None,
        )

    def _used(self) -> Usage:
        try:
            return Usage() if self._surroundings.group is None else self._surroundings.group.usage()
        except OSError:  # the group went with its container
            return Usage()

    async def _exit_code(self) -> int:
        pause = 0.01
        try:
            while (code := await self._engine.exit_code(self._exec_id)) is None:  # it closed its output and goes on
                await asyncio.sleep(pause)
                pause = min(2 * pause, _LONGEST_PAUSE)
        except NotFound:  # it went with its container
            self._was_killed = True
            return 128 + signal.SIGKILL
        return code

    async def _next(self) -> Output | None:
        """One piece of the output; None at the end."""
        reader = self._connection.reader
        try:
            if self._command.terminal is not None:
                data = await reader.read(_PIECE)
                return Output(stream=OutputStream.STDOUT, data=data) if data else None
            number, size = _FRAME.unpack(await reader.readexactly(_FRAME.size))
            return Output(
                stream=OutputStream.STDERR if number == 2 else OutputStream.STDOUT, data=await reader.readexactly(size)
            )
        except (asyncio.IncompleteReadError, ConnectionError):
            return None

    def _stop(self, limit: Limit) -> None:
        if self._stopped_by is None and not self._ended:
            self._stopped_by = limit
            self._watchers.append(asyncio.create_task(self.kill()))

    async def _watch_clock(self, seconds: float) -> None:
        await asyncio.sleep(seconds)
        self._stop(Limit.EXECUTION_TIME)

    async def _watch(self, watch: Callable[[], Awaitable[Limit]]) -> None:
        self._stop(await watch())


class _Backlog:
    """What was read and nobody took yet: bounded, so that a slow reader slows the command down."""

    def __init__(self) -> None:
        self._pieces: deque[Output] = deque()
        self._size = 0
        self._has_ended = False
        self._overflows = False
        self._changed = asyncio.Event()

    async def add(self, piece: Output) -> None:
        while self._size >= _AHEAD and not self._overflows:
            await self._change()
        if self._size < _AHEAD:
            self._size += len(piece.data)
            self._pieces.append(piece)
            self._changed.set()

    async def take(self) -> Output | None:
        """None at the end."""
        while not self._pieces and not self._has_ended:
            await self._change()
        if not self._pieces:
            return None
        piece = self._pieces.popleft()
        self._size -= len(piece.data)
        self._changed.set()
        return piece

    def set_overflow(self, overflows: bool) -> None:
        """Whether what does not fit is thrown away, or waits."""
        self._overflows = overflows
        self._changed.set()

    def end(self) -> None:
        self._has_ended = True
        self._changed.set()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
