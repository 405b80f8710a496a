"""The driver: the port's words in the engine's."""

import asyncio
import hashlib
import re
from collections import defaultdict
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from datetime import datetime, timedelta
from pathlib import PurePosixPath
from typing import Final
from uuid import uuid4

from contextbase.errors import Conflict, ContextbaseError, InvalidInput, MachineProblem, NotFound
from contextbase.ids import Clock, ContentHash, SystemClock
from contextbase.sandbox import archives
from contextbase.sandbox.docker.channel import RelayChannel, relay_command
from contextbase.sandbox.docker.connection import DEFAULT_ADDRESS
from contextbase.sandbox.docker.container import (
    HOLDER,
    NODE_LABEL,
    Container,
    Mode,
    configuration,
    foundation,
    size_limited,
)
from contextbase.sandbox.docker.engine import Engine
from contextbase.sandbox.docker.execution import DockerExecution
from contextbase.sandbox.docker.inside import Inside
from contextbase.sandbox.model import (
    WORKSPACE,
    Command,
    SandboxId,
    SandboxInfo,
    SandboxSpec,
    SandboxState,
    SandboxStats,
    StorageProof,
)
from contextbase.workspaces.model import Owner

__all__ = ["DockerDriver"]

_STOP_PATIENCE: Final = 1  # seconds; the holder ends at once, and the kernel ends the rest with it
_LEFT_BEHIND: Final = timedelta(minutes=1)  # longer than a command's container waits for it


class DockerDriver:
    """Containers of a Docker engine on this machine. Their image needs /bin/sh, sleep, find and GNU tar, and
    python3 for `connect`. With either network they have a loopback of their own, and nothing else."""

    def __init__(
        self,
        *,
        node: str,
        owner: Owner,
        image: str,
        address: str = DEFAULT_ADDRESS,
        most_at_once: int = 4,  # starts, and ends: a storm of them takes longer, or the engine hangs for good
        timeout: float = 60,
        clock: Clock | None = None,
    ) -> None:
        if not re.fullmatch(r"[a-z0-9][a-z0-9_.-]{0,62}", node):
            raise InvalidInput(f"{node!r} cannot name a node: lower-case letters, digits, '-', '_' and '.' alone.")
        if owner.uid in {0, HOLDER} or owner.gid == 0:
            raise InvalidInput("Agents run neither as root nor as nobody in containers: name another account for them.")
        self._node = node
        self._owner = owner
        self._image = image
        self._clock = clock or SystemClock()
        self._engine = Engine(address, timeout=timeout)
        self._inside = Inside(self._engine, owner)
        self._starts = asyncio.Semaphore(most_at_once)
        self._ends = asyncio.Semaphore(most_at_once)
        self._locks: defaultdict[SandboxId, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._known: dict[SandboxId, Container] = {}
        self._processors: int | None = None
        self._engine_limits_size = True  # until it says that it cannot

    @property
    def name(self) -> str:
        return "docker"

    async def create(self, spec: SandboxSpec) -> SandboxInfo:
        mode = Mode.CONTAINER if spec.folder is None else Mode.FOLDER
        name = self._name_of(spec.id)
        async with self._locks[spec.id], self._starts:
            await self._create(name, spec, mode)
            container = await self._found(spec.id)
            if mode is Mode.CONTAINER and container.info.state is SandboxState.CREATED:
                await self._engine.put_archive(name, foundation(self._owner))
            return container.info

    async def start(self, sandbox_id: SandboxId) -> None:
        async with self._locks[sandbox_id], self._starts:
            await self._engine.start(self._name_of(sandbox_id))
            self._known.pop(sandbox_id, None)  # it has a control group now

    async def stop(self, sandbox_id: SandboxId) -> None:
        async with self._locks[sandbox_id]:
            await self._stop(self._name_of(sandbox_id))

    async def remove(self, sandbox_id: SandboxId, *, proof: StorageProof | None = None) -> None:
        async with self._locks[sandbox_id]:
            container = await self._found(sandbox_id)
            await self._stop(container.name)
            if container.info.holds_files:
                await self._require(proof, container)
            async with self._ends:
                await self._engine.remove(container.name, even_running=not container.info.holds_files)
        self._known.pop(sandbox_id, None)
        self._inside.forget(container.name)
        self._locks.pop(sandbox_id, None)

    async def _stop(self, container: str) -> None:
        async with self._ends:
            await self._engine.stop(container, patience=_STOP_PATIENCE)

    async def inspect(self, sandbox_id: SandboxId) -> SandboxInfo:
        return (await self._found(sandbox_id)).info

    async def found(self) -> list[SandboxInfo]:
        """Removes what `run` left behind where its driver died."""
        infos = []
        for listed in await self._engine.containers(f"{NODE_LABEL}={self._node}"):
            container = Container.listed(listed["Id"], listed["Labels"], listed["State"])
            if container.mode is not Mode.ONE_COMMAND:
                infos.append(container.info)
            elif _is_left_behind(container, self._clock.now()):
                await self._engine.remove(container.name)
        return sorted(infos, key=lambda info: info.created_at)

    async def exec(self, sandbox_id: SandboxId, command: Command) -> DockerExecution:
        return await self._inside.command(await self._remembered(sandbox_id), command)

    async def run(self, spec: SandboxSpec, command: Command) -> DockerExecution:
        if spec.folder is None:
            raise InvalidInput("A single command needs a folder to work in.")
        name = self._name_of(SandboxId(uuid4().hex))
        try:
            async with self._starts:
                await self._create(name, spec, Mode.ONE_COMMAND)
                await self._engine.start(name)
            container = await self._inspected(name)
        except BaseException:
            await self._engine.remove(name)
            raise
        return await self._inside.only_command(container, command)

    async def copy_in(self, sandbox_id: SandboxId, folder: PurePosixPath, archive: AsyncIterator[bytes]) -> None:
        place = WORKSPACE / folder
        container = await self._found(sandbox_id)
        if container.is_running:
            await self._inside.unpack(container, place, archive)
            return
        async with self._locks[sandbox_id]:  # nothing of the agent's runs meanwhile
            await self._engine.start(container.name)
            try:
                await self._inside.unpack(container, place, archive)
            finally:
                await self._stop(container.name)

    async def copy_out(self, sandbox_id: SandboxId, folder: PurePosixPath) -> AsyncGenerator[bytes, None]:
        place = WORKSPACE / folder
        container = await self._found(sandbox_id)
        # The engine's own archive holds what the agent may not read, too, but nobody else gets near the container then.
        source = self._inside.packed(container, place) if container.is_running else self._archived(container, place)
        async with aclosing(source), aclosing(archives.normalized(source)) as plain:
            async for piece in plain:
                yield piece

    async def stats(self, sandbox_id: SandboxId) -> SandboxStats:
        found = await self._engine.stats(self._name_of(sandbox_id))
        memory, processes = found["memory_stats"], found["pids_stats"]
        if "current" not in processes:
            raise Conflict("The sandbox does not run.")
        details = memory.get("stats", {})
        cached = details.get("total_inactive_file", details.get("inactive_file", 0))
        return SandboxStats(
            memory=max(0, memory["usage"] - cached),
            peak_memory=memory.get("max_usage"),
            cpu_seconds=found["cpu_stats"]["cpu_usage"]["total_usage"] / 1e9,
            processes=processes["current"],
        )

    async def connect(self, sandbox_id: SandboxId, socket: PurePosixPath) -> RelayChannel:
        place = str(WORKSPACE / socket)
        relay = await self._inside.own_program(await self._remembered(sandbox_id), relay_command(place))
        channel = RelayChannel(relay)
        await channel.open(place)
        return channel

    async def close(self) -> None:
        await self._inside.close()
        await self._engine.close()

    async def _create(self, name: str, spec: SandboxSpec, mode: Mode) -> None:
        if spec.folder is not None and not spec.folder.is_absolute():
            raise InvalidInput(f"The folder of a sandbox is named from the root, not {str(spec.folder)!r}.")
        if mode is Mode.CONTAINER and (spec.home is not None or spec.read_only):
            raise InvalidInput("A sandbox that holds its files itself has no folders of this machine in it.")
        if any(not variable or "=" in variable for variable in spec.environment):
            raise InvalidInput("The name of a variable is not empty and holds no '='.")
        config = configuration(
            spec,
            mode=mode,
            node=self._node,
            owner=self._owner,
            image=spec.image or self._image,
            now=self._clock.now(),
            processors=await self._checked_processors(),
        )
        if mode is Mode.CONTAINER and spec.limits.max_disk is not None and self._engine_limits_size:
            try:
                await self._engine.create(name, size_limited(config, spec.limits.max_disk))
                return
            except ContextbaseError as error:
                if "storage-opt" not in error.message:
                    raise
                self._engine_limits_size = False  # so we watch its size
        await self._engine.create(name, config)

    async def _checked_processors(self) -> int:
        """How many this machine has; raises when its engine lets every system call through."""
        if self._processors is None:
            info = await self._engine.info()
            if not any("seccomp" in option for option in info.get("SecurityOptions") or ()):
                raise MachineProblem("This Docker engine does not filter system calls: use an engine with seccomp.")
            self._processors = int(info["NCPU"])
        return self._processors

    async def _require(self, proof: StorageProof | None, container: Container) -> None:
        if proof is None:
            raise Conflict("The sandbox holds files of its own: it is kept until they are proven to be stored.")
        digest = hashlib.sha256()
        async with aclosing(self._archived(container, WORKSPACE)) as source:
            async for piece in archives.normalized(source):
                digest.update(piece)
        if ContentHash(digest.digest()) != proof.archive:
            raise Conflict("The files in the sandbox are not those that were stored: it is kept. Store them again.")

    async def _archived(self, container: Container, folder: PurePosixPath) -> AsyncGenerator[bytes, None]:
        try:
            async with aclosing(self._engine.archive(container.name, f"{folder}/.")) as pieces:
                async for piece in pieces:
                    yield piece
        except NotFound as error:
            raise InvalidInput(f"There is no folder {str(folder)!r} in the sandbox.") from error

    async def _remembered(self, sandbox_id: SandboxId) -> Container:
        return self._known.get(sandbox_id) or await self._found(sandbox_id)

    async def _found(self, sandbox_id: SandboxId) -> Container:
        container = self._known[sandbox_id] = await self._inspected(self._name_of(sandbox_id))
        return container

    async def _inspected(self, name: str) -> Container:
        return Container.inspected(name, await self._engine.inspect(name))

    def _name_of(self, sandbox_id: SandboxId) -> str:
        return f"contextbase-{self._node}-{sandbox_id}"


def _is_left_behind(container: Container, now: datetime) -> bool:
    age = now - container.info.created_at - _LEFT_BEHIND
    longest = container.limits.max_execution_time
    if container.is_running:
        return longest is not None and age > timedelta(seconds=longest)
    return age > timedelta()
