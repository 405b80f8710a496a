"""What runs inside a container: agents' commands, and the few programs of our own."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import aclosing
from pathlib import PurePosixPath
from typing import Final

from contextbase.errors import Conflict, Unavailable
from contextbase.limits import Limit, ResourceLimits
from contextbase.sandbox.docker.container import Container
from contextbase.sandbox.docker.engine import Engine
from contextbase.sandbox.docker.execution import DockerExecution, Surroundings, entering
from contextbase.sandbox.model import Command, Stream

__all__ = ["Inside"]

_NO_LIMITS: Final = ResourceLimits(
    max_memory=None, max_cpu=None, max_processes=None, max_execution_time=None, max_output=None, max_disk=None
)
_SIZE_INTERVAL: Final = 2.0  # seconds between two looks at a layer's size, and ten times what a look takes
_MOST_SAID: Final = 2000  # bytes of what a program of ours says about its failure
_PATH: Final = {"PATH": "/usr/local/bin:/usr/bin:/bin"}  # not the sandbox's own, which may name other programs
_PACK: Final = ("tar", "-c", "--sort=name", "--warning=no-file-changed", "-f", "-", ".")
_UNPACK: Final = 'mkdir -p -- "$1" && exec tar -x -p --no-same-owner -f - -C "$1"'


class Inside:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._executions: set[DockerExecution] = set()

    async def close(self) -> None:
        """Ends every command it started."""
        await asyncio.gather(*(_end(execution) for execution in list(self._executions)))

    async def command(self, container: Container, command: Command) -> DockerExecution:
        async def kill(process: int) -> None:
            await self._kill(container, process)

        return await self._start(container, command, container.limits, kill)

    async def only_command(self, container: Container, command: Command) -> DockerExecution:
        """The container goes with it."""

        async def kill(_: int) -> None:
            await self._engine.stop(container.name, patience=0)

        async def remove() -> None:
            await self._engine.remove(container.name)

        return await self._start(container, command, container.limits, kill, remove)

    async def own_program(self, container: Container, command: Command) -> DockerExecution:
        """Without the limits that are about an agent's command."""

        async def kill(process: int) -> None:
            await self._kill(container, process)

        return await self._start(container, command, _NO_LIMITS, kill)

    async def packed(self, container: Container, folder: PurePosixPath) -> AsyncGenerator[bytes, None]:
        """A tar stream of what is below the folder; `Conflict` when the agent may not read all of it."""
        execution = await self.own_program(container, Command(argv=_PACK, cwd=folder, environment=_PATH))
        said = b""
        try:
            async with aclosing(execution.output()) as output:
                async for piece in output:
                    if piece.stream is Stream.STDOUT:
                        yield piece.data
                    else:
                        said = (said + piece.data)[:_MOST_SAID]
        finally:
            await execution.kill()
            outcome = await execution.wait()
        if outcome.exit_code not in {0, 1}:  # 1: a file changed while it was read
            raise Conflict(f"Not everything in {folder} can be read: {_text(said)}")

    async def unpack(self, container: Container, folder: PurePosixPath, archive: AsyncIterator[bytes]) -> None:
        """As the agent, so that no link it made leads to anything that is not its own already."""
        command = Command(
            argv=("/bin/sh", "-c", _UNPACK, "sh", str(folder)),
            cwd=PurePosixPath("/"),
            environment=_PATH,
            has_input=True,
        )
        execution = await self.own_program(container, command)
        try:
            async for piece in archive:
                await execution.write(piece)
            await execution.end_input()
        except Conflict:  # it ended early, and says why
            pass
        except BaseException:
            await execution.kill()
            raise
        said = b"".join([piece.data async for piece in execution.output()])
        outcome = await execution.wait()
        if outcome.exit_code != 0:
            raise Conflict(f"The archive could not be unpacked in {folder}: {_text(said[:_MOST_SAID])}")

    async def _start(
        self,
        container: Container,
        command: Command,
        limits: ResourceLimits,
        kill: Callable[[int], Coroutine[None, None, None]],
        after: Callable[[], Awaitable[None]] | None = None,
    ) -> DockerExecution:
        async def ended() -> None:
            self._executions.discard(execution)
            if after is not None:
                await after()

        async def watch() -> Limit:
            return await self._outgrown(container, limits)

        terminal = {"TERM": "xterm-256color"} if command.terminal is not None else {}
        try:
            exec_id, connection = await self._engine.execute(
                container.name,
                entering(command),
                environment={**terminal, **command.environment},
                has_input=command.has_input,
                has_terminal=command.terminal is not None,
            )
        except BaseException:
            if after is not None:
                await after()
            raise
        execution = DockerExecution(
            engine=self._engine,
            exec_id=exec_id,
            connection=connection,
            command=command,
            limits=limits,
            surroundings=Surroundings(
                kill=kill, ended=ended, watch=watch if limits.max_disk and container.is_watched else None
            ),
        )
        self._executions.add(execution)
        await execution.begin()
        return execution

    async def _kill(self, container: Container, process: int) -> None:
        """It and its process group, from inside: the engine has no call for it, and knows no process ids of there. A
        sandbox in which not even that can run is stopped."""
        argv = ("/bin/sh", "-c", f"kill -9 -{process}")
        order = Command(argv=argv, cwd=PurePosixPath("/"), environment=_PATH)
        try:
            await (await self.own_program(container, order)).wait()
        except Conflict:
            return  # it does not run, and the command neither
        except Unavailable:
            await self._engine.stop(container.name, patience=0)

    async def _outgrown(self, container: Container, limits: ResourceLimits) -> Limit:
        """Returns when the files in the container are more than they may be."""
        loop = asyncio.get_running_loop()
        while True:
            began = loop.time()
            size = await self._engine.size(container.name)
            if limits.max_disk is not None and size > limits.max_disk:
                return Limit.DISK
            await asyncio.sleep(max(_SIZE_INTERVAL, 10 * (loop.time() - began)))


async def _end(execution: DockerExecution) -> None:
    await execution.kill()
    await execution.wait()


def _text(said: bytes) -> str:
    return said.decode(errors="replace").strip()
