"""What runs inside a container: agents' commands, and the few programs of our own."""

import asyncio
import os
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, suppress
from pathlib import PurePosixPath
from typing import Final

from contextbase.errors import Conflict, TooLarge, Unavailable
from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox import archives
from contextbase.sandbox.cgroups import NO_LIMITS
from contextbase.sandbox.disk import watch_disk
from contextbase.sandbox.docker.container import Container
from contextbase.sandbox.docker.crowd import Crowd, processes_of
from contextbase.sandbox.docker.engine import Engine
from contextbase.sandbox.docker.execution import DockerExecution, Surroundings, entering
from contextbase.sandbox.leftovers import words_of
from contextbase.sandbox.model import Command, Output, OutputStream
from contextbase.workspaces.model import Owner

__all__ = ["Inside"]

_SIZE_INTERVAL: Final = 2.0  # seconds between two looks at a layer's size, and ten times what a look takes
_KILL_SECONDS: Final = 20
_KILL_TRIES: Final = 8
_TERMINAL: Final = "xterm-256color"
_MOST_SAID: Final = 2000  # bytes of what a program of ours says about its failure
_PATH: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin"}  # not the sandbox's own, which may name other programs
_PACK: Final = ("tar", "-c", "--sort=name", "--warning=no-file-changed", "-f", "-", ".")
_UNPACK: Final = (
    'mkdir -p -- "$1" && cd -- "$1" && find . -type l -print0 && printf "\\0" && exec tar -x -p --no-same-owner -f -'
)
_MOST_LINKS: Final = 64 << 20  # bytes of their names


class Inside:
    def __init__(self, engine: Engine, owner: Owner) -> None:
        self._engine = engine
        self._owner = owner
        self._executions: set[DockerExecution] = set()
        self._crowds: dict[str, Crowd] = {}

    async def close(self) -> None:
        """Ends every command it started."""
        await asyncio.gather(*(_end(execution) for execution in list(self._executions)))

    def forget(self, name: str) -> None:
        """The container is gone."""
        self._crowds.pop(name, None)

    async def command(self, container: Container, command: Command) -> DockerExecution:
        return await self._start(container, command, container.limits)

    async def only_command(self, container: Container, command: Command) -> DockerExecution:
        """The container goes with it."""
        return await self._start(container, command, container.limits, is_alone=True)

    async def own_program(self, container: Container, command: Command) -> DockerExecution:
        """Without the limits that are about an agent's command."""
        return await self._start(container, command, NO_LIMITS)

    async def packed(self, container: Container, folder: PurePosixPath) -> AsyncGenerator[bytes, None]:
        """A tar stream of what is below the folder; `Conflict` when the agent may not read all of it."""
        execution = await self.own_program(container, Command(argv=_PACK, cwd=folder, environment=_PATH))
        said = b""
        try:
            async with aclosing(execution.output()) as output:
                async for piece in output:
                    if piece.stream is OutputStream.STDOUT:
                        yield piece.data
                    else:
                        said = (said + piece.data)[:_MOST_SAID]
        finally:
            await execution.kill()
            outcome = await execution.wait()
        if outcome.exit_code not in {0, 1}:  # 1: a file changed while it was read
            raise Conflict(f"Not everything in {folder} can be read: {_text(said)}")

    async def unpack(self, container: Container, folder: PurePosixPath, archive: AsyncIterator[bytes]) -> None:
        """As the agent, so that nothing lands where it could not write itself; nor through a link of its own."""
        argv = ("/bin/sh", "-c", _UNPACK, "sh", str(folder))
        command = Command(argv=argv, cwd=PurePosixPath("/"), environment=_PATH, has_input=True)
        execution = await self.own_program(container, command)
        said = bytearray()
        async with aclosing(execution.output()) as output:
            try:
                links = await _links_first(output, said)
                async with aclosing(archives.checked(archive, self._owner, links)) as checked:
                    async for piece in checked:
                        await execution.write(piece)
                await execution.end_input()
            except Conflict:
                pass  # it ended early, and says why
            except BaseException:
                await execution.kill()
                raise
            async for rest in output:
                said += rest.data
        outcome = await execution.wait()
        if outcome.exit_code != 0:
            raise Conflict(f"The archive could not be unpacked in {folder}: {_text(said[:_MOST_SAID])}")

    async def _start(
        self, container: Container, command: Command, limits: ResourceLimits, *, is_alone: bool = False
    ) -> DockerExecution:
        async def kill(process: int) -> None:
            if is_alone:
                await self._engine.stop(container.name, patience=0)
                return
            with suppress(Conflict):  # it does not run any more, nor does the command
                await self._kill(container, process)

        crowd = self._crowds.setdefault(container.name, Crowd())
        most = limits.max_processes
        has_left = False

        def left() -> None:
            nonlocal has_left
            if not has_left:
                has_left = True
                crowd.end(words_of(command.argv), container.group)

        async def refused() -> tuple[str, ...]:
            left()
            return await crowd.make_room(container.group, most=most)

        async def ended() -> None:
            left()
            self._executions.discard(execution)
            if is_alone:
                self.forget(container.name)
                await self._engine.remove(container.name)

        async def watch() -> Limit:
            await self._outgrown(container)
            return Limit.DISK

        has_terminal = command.terminal is not None
        is_full = container.group is not None and most is not None and processes_of(container.group) >= most
        leftovers_of = await crowd.make_room(container.group, most=most) if is_full else ()
        crowd.begin()
        try:
            exec_id, connection = await self._engine.execute(
                container.name,
                entering(command),
                owner=self._owner,
                environment={**({"TERM": _TERMINAL} if has_terminal else {}), **command.environment},
                has_input=command.has_input or has_terminal,
                has_terminal=has_terminal,
            )
        except BaseException:
            left()
            if is_alone:
                await self._engine.remove(container.name)
            raise
        execution = DockerExecution(
            engine=self._engine,
            exec_id=exec_id,
            connection=connection,
            command=command,
            limits=limits,
            surroundings=Surroundings(
                kill=kill,
                ended=ended,
                watch=watch if limits.max_disk is not None and not container.is_size_limited else None,
                group=container.group,
                is_alone=is_alone,
                refused=refused,
                leftovers_of=leftovers_of,
            ),
        )
        self._executions.add(execution)
        await execution.begin()
        return execution

    async def _kill(self, container: Container, process: int) -> None:
        """It and its process group, from inside: the engine has no call for it, and knows no process ids of there.
        Where a sandbox is full of processes the engine's own way in may fail, or not; one in which it always does is
        stopped."""
        argv = ("/bin/sh", "-c", f"kill -9 -{process}")
        order = Command(argv=argv, cwd=PurePosixPath("/"), environment=_PATH)
        with suppress(TimeoutError):
            async with asyncio.timeout(_KILL_SECONDS):
                for _ in range(_KILL_TRIES):
                    with suppress(Unavailable):
                        await (await self.own_program(container, order)).wait()
                        return
        await self._engine.stop(container.name, patience=0)

    async def _outgrown(self, container: Container) -> None:
        """Until its files are more than they may be."""
        most = container.limits.max_disk
        if most is None:
            return
        if container.folder is not None:
            await watch_disk(container.folder, most, lambda: None)
            return
        loop = asyncio.get_running_loop()
        began = loop.time()
        while await self._engine.size(container.name) <= most:
            await asyncio.sleep(max(_SIZE_INTERVAL, 10 * (loop.time() - began)))
            began = loop.time()


async def _end(execution: DockerExecution) -> None:
    with suppress(Unavailable):  # without its engine it has ended already
        await execution.kill()
        await execution.wait()


async def _links_first(output: AsyncIterator[Output], said: bytearray) -> frozenset[PurePosixPath]:
    """The names that come first, each with a NUL behind it and one more at the end. `Conflict` when they do not come,
    for the reason that was said."""
    names = bytearray()
    while names != b"\0" and not names.endswith(b"\0\0"):
        piece = await anext(output, None)
        if piece is None:
            raise Conflict("It did not begin.")
        if piece.stream is OutputStream.STDERR:
            said += piece.data
        elif len(names) + len(piece.data) > _MOST_LINKS:
            raise TooLarge("The folder in the sandbox holds too many links to unpack an archive there safely.")
        else:
            names += piece.data
    return frozenset(PurePosixPath(os.fsdecode(bytes(name))) for name in names.split(b"\0") if name)


def _text(said: bytes | bytearray) -> str:
    return said.decode(errors="replace").strip()
