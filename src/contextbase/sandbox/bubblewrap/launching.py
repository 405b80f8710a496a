"""Starts holders, commands and archives, and sees to their control groups."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import uuid4

from contextbase.errors import Conflict, InvalidInput, MachineProblem, Unavailable
from contextbase.limits import Limit
from contextbase.sandbox.accounting import Account
from contextbase.sandbox.bubblewrap.line import Machine, holder_line
from contextbase.sandbox.cgroups import NO_LIMITS, ControlGroup
from contextbase.sandbox.disk import watch_disk
from contextbase.sandbox.execution import Ended, LaunchedExecution, Streams
from contextbase.sandbox.launcher.client import Conversation, Launcher, Said
from contextbase.sandbox.launcher.order import Order, Refusal, Task
from contextbase.sandbox.launcher.system import detach_mount
from contextbase.sandbox.model import HOME, WORKSPACE, Command, Outcome, SandboxId, SandboxSpec
from contextbase.sandbox.records import RunningHolder
from contextbase.sandbox.seccomp import seccomp_filter
from contextbase.workspaces.model import Owner

__all__ = ["Launching"]

_OURS: Final = 3
"""Processes of a sandbox that are not the agent's: bubblewrap outside, bubblewrap inside, the program that waits."""

_OPEN_FILES: Final = 65_536
_ENVIRONMENT: Final = {
    "PATH": "/usr/local/bin:/usr/bin:/bin",
    "HOME": str(HOME),
    "USER": "agent",
    "LOGNAME": "agent",
    "LANG": "C.UTF-8",
}
_TRIES, _PAUSE = 200, 0.01


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where something is run: in a holder that is there, or in one that is made for it."""

    spec: SandboxSpec
    folder: Path
    holder: RunningHolder | None
    sandbox: ControlGroup | None
    leaf: ControlGroup | None


class Launching:
    def __init__(self, *, machine: Machine, launcher: Launcher, groups: ControlGroup | None, owner: Owner) -> None:
        self._machine = machine
        self._launcher = launcher
        self._groups = groups
        self._owner = owner

    def group_of(self, sandbox_id: SandboxId) -> ControlGroup | None:
        return None if self._groups is None else self._groups.below(str(sandbox_id))

    async def hold(self, spec: SandboxSpec) -> RunningHolder:
        """Start a sandbox's holder, which outlives us."""
        folder = folder_of(spec)
        group = self.group_of(spec.id)
        leaf = None if group is None else group.below("holder")
        if group is not None and leaf is not None:
            await asyncio.to_thread(group.make, spec.limits, extra_processes=_OURS)
            await asyncio.to_thread(leaf.make, NO_LIMITS)
        order = Order(
            task=Task.HOLD,
            uid=self._owner.uid,
            gid=self._owner.gid,
            holder=holder_line(self._machine, spec, folder, ends_with_parent=False),
            holder_groups=() if leaf is None else leaf.members,
            mount_at=str(WORKSPACE) if self._machine.has_own_root else None,
            filter=seccomp_filter(spec.network).hex(),
        )
        async with self._sent(order, spec, folder) as conversation:
            values = (await _answer(conversation)).values
        return RunningHolder.of_this_boot(values["holder"], values["started"])

    async def connect(self, holder: RunningHolder, path: PurePosixPath) -> socket.socket:
        order = Order(
            task=Task.CONNECT,
            uid=self._owner.uid,
            gid=self._owner.gid,
            process=holder.process,
            started=holder.started,
            path=str(path),
        )
        async with self._sent(order) as conversation:
            said = await _answer(conversation)
        (descriptor,) = said.descriptors
        return socket.socket(fileno=descriptor)

    async def run(self, spec: SandboxSpec, holder: RunningHolder | None, command: Command) -> LaunchedExecution:
        """In this sandbox; without a holder in one that is made for the command and ends with it."""
        has_terminal = command.terminal is not None
        terminal = {"TERM": "xterm-256color"} if has_terminal else {}
        streams = (
            Streams.pipes(has_input=command.has_input)
            if command.terminal is None
            else Streams.terminal(command.terminal, has_input=command.has_input)
        )
        longest = [seconds for seconds in (command.timeout, spec.limits.max_execution_time) if seconds is not None]
        return await self._start(
            spec,
            holder,
            streams,
            max_output=spec.limits.max_output,
            timeout=min(longest, default=None),
            task=Task.RUN,
            argv=command.argv,
            environment={**_ENVIRONMENT, **terminal, **spec.environment, **command.environment},
            path=str(WORKSPACE / command.cwd),
            has_terminal=has_terminal,
        )

    async def archive(
        self, spec: SandboxSpec, holder: RunningHolder | None, task: Task, folder: PurePosixPath
    ) -> LaunchedExecution:
        """Pack a folder to standard output, or unpack standard input into it."""
        streams = Streams.pipes(has_input=task is Task.UNPACK)
        path = str(WORKSPACE / folder)
        return await self._start(spec, holder, streams, max_output=None, timeout=None, task=task, path=path)

    async def _start(
        self,
        spec: SandboxSpec,
        holder: RunningHolder | None,
        streams: Streams,
        *,
        max_output: int | None,
        timeout: float | None,
        **values: Any,
    ) -> LaunchedExecution:
        try:
            async with self._place(spec, holder) as place:
                order = self._order(place, **values)
                mounts = place.folder if holder is None else None
                async with self._sent(order, spec, mounts, streams.theirs, keeps=True) as conversation:
                    await _answer(conversation)
                    return self._followed(place, conversation, streams, max_output=max_output, timeout=timeout)
        except BaseException:
            streams.close()
            raise
        finally:
            streams.hand_over()

    @asynccontextmanager
    async def _place(self, spec: SandboxSpec, holder: RunningHolder | None) -> AsyncIterator[_Place]:
        """Its groups are removed if the body fails."""
        folder = folder_of(spec)
        sandbox = leaf = None
        if self._groups is not None and holder is None:
            sandbox = leaf = self._groups.below(f"run-{uuid4().hex}")
            await asyncio.to_thread(leaf.make, spec.limits, extra_processes=_OURS)
        elif self._groups is not None:
            sandbox = self._groups.below(str(spec.id))
            leaf = sandbox.below(f"exec-{uuid4().hex}")
            await asyncio.to_thread(leaf.make, NO_LIMITS)
        try:
            yield _Place(spec=spec, folder=folder, holder=holder, sandbox=sandbox, leaf=leaf)
        except BaseException:
            if leaf is not None:
                await _remove(leaf)
            raise

    def _order(self, place: _Place, **values: Any) -> Order:
        spec, holder, leaf = place.spec, place.holder, place.leaf
        members = () if leaf is None else leaf.members
        if holder is None:
            line = holder_line(self._machine, spec, place.folder, ends_with_parent=True)
            values |= {"holder": line, "holder_groups": members}
            values["mount_at"] = str(WORKSPACE) if self._machine.has_own_root else None
        else:
            values |= {"process": holder.process, "started": holder.started}
        return Order(
            uid=self._owner.uid,
            gid=self._owner.gid,
            groups=members,
            stoppers=() if leaf is None else leaf.stoppers,
            limits=self._process_limits(spec),
            filter=seccomp_filter(spec.network).hex(),
            **values,
        )

    def _process_limits(self, spec: SandboxSpec) -> dict[str, int]:
        limits = {"RLIMIT_CORE": 0, "RLIMIT_NOFILE": _OPEN_FILES}
        if spec.limits.max_disk is not None:
            limits["RLIMIT_FSIZE"] = spec.limits.max_disk
        if self._groups is None:
            if spec.limits.max_processes is not None:
                limits["RLIMIT_NPROC"] = spec.limits.max_processes + _OURS
            if spec.limits.max_memory is not None:
                limits["RLIMIT_DATA"] = spec.limits.max_memory
        return limits

    @asynccontextmanager
    async def _sent(
        self,
        order: Order,
        spec: SandboxSpec | None = None,
        folder: Path | None = None,
        streams: tuple[int, ...] = (),
        *,
        keeps: bool = False,
    ) -> AsyncIterator[Conversation]:
        """`folder`: to be mounted for a new holder. The conversation is closed, unless it is kept and all went well."""
        mount = None
        if folder is not None and self._machine.has_own_root:
            mount = await asyncio.to_thread(_mount_of, folder)
        filled = streams or tuple(os.open(os.devnull, os.O_RDWR) for _ in range(3))
        try:
            conversation = await self._launcher.send(order, (*filled, *(() if mount is None else (mount,))))
        finally:
            for descriptor in (*(() if streams else filled), *(() if mount is None else (mount,))):
                os.close(descriptor)
        try:
            yield conversation
        except BaseException:
            conversation.close()
            raise
        if not keeps:
            conversation.close()

    def _followed(
        self,
        place: _Place,
        conversation: Conversation,
        streams: Streams,
        *,
        max_output: int | None,
        timeout: float | None,
    ) -> LaunchedExecution:
        account = Account.open(place.leaf, place.sandbox)
        watching: asyncio.Task[None] | None = None

        async def finish(ended: Ended) -> Outcome:
            if watching is not None:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching
            outcome = account.outcome(ended)
            if place.leaf is not None:
                await (_remove(place.leaf) if place.holder is None else _remove_if_empty(place.leaf))
            return outcome

        execution = LaunchedExecution(conversation, streams, max_output=max_output, timeout=timeout, finish=finish)
        most = place.spec.limits.max_disk
        if most is not None and not place.spec.is_read_only:
            watching = asyncio.create_task(watch_disk(place.folder, most, lambda: execution.stop(Limit.DISK)))
        return execution


def folder_of(spec: SandboxSpec) -> Path:
    if spec.folder is None:
        raise InvalidInput("bubblewrap sandboxes work in a folder and hold no files themselves; Docker ones do.")
    if not spec.folder.is_absolute():
        raise InvalidInput(f"The folder of a sandbox is an absolute path, not {spec.folder}.")
    return spec.folder


def _mount_of(folder: Path) -> int:
    try:
        return detach_mount(str(folder))
    except (FileNotFoundError, NotADirectoryError):
        raise InvalidInput(f"There is no folder {folder}.") from None


async def _answer(conversation: Conversation) -> Said:
    said = await conversation.receive()
    if said is None:
        raise MachineProblem("The process that gets into the sandbox was ended from outside.")
    why = said.values.get("why")
    match said.values.get("refused"):
        case None:
            return said
        case Refusal.FOLDER:
            raise InvalidInput(f"The command cannot start in its folder: {why}.")
        case Refusal.GONE:
            raise Conflict("The sandbox does not run.")
        case Refusal.NOBODY:
            raise Unavailable(f"Nobody listens on that socket: {why}.")
        case _:
            raise MachineProblem(f"No sandbox can be made on this machine: {why}.")


async def _remove(group: ControlGroup) -> None:
    """What is killed takes a moment to leave its group."""
    for _ in range(_TRIES):
        if await asyncio.to_thread(group.remove):
            return
        await asyncio.sleep(_PAUSE)


async def _remove_if_empty(group: ControlGroup) -> None:
    await asyncio.to_thread(group.remove)
