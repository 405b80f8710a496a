"""Starts holders, commands and archives, and sees to their control groups."""

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any, Final
from uuid import uuid4

from contextbase.errors import Conflict, InvalidInput, MachineProblem, Unavailable
from contextbase.limits import Limit
from contextbase.sandbox.cgroups import NO_MEMORY, ControlGroup, group_at, kill_group, make_leaf, remove_group
from contextbase.sandbox.disk import watch_disk
from contextbase.sandbox.enclosure import Enclosure
from contextbase.sandbox.execution import Ended, LaunchedExecution, Streams
from contextbase.sandbox.leftovers import Leftovers, emptied, words_of
from contextbase.sandbox.model import Command, CommandOutcome, SandboxId, SandboxSpec
from contextbase.sandbox.native.launcher.client import Conversation, Launcher, Said
from contextbase.sandbox.native.launcher.order import Order, StartRefusal, Task
from contextbase.sandbox.native.launcher.system import detach_mount
from contextbase.sandbox.records import RunningHolder
from contextbase.sandbox.spares import Spares
from contextbase.sandbox.usage import GroupUsage
from contextbase.workspaces.model import Owner

__all__ = ["Starter", "folder_of"]

_OURS: Final = 3
"""Processes of a sandbox that are not the agent's: bubblewrap, the shell that waits, the errand of a command."""

_OF_A_COMMAND: Final = 2
"""Processes that a command takes at least: its errand and its own."""

_LONGEST_START: Final = 60
"""Seconds. A command that has not begun by then is held up by a program inside: until it begins, no limit of its own
counts."""

_FEW_TRIES: Final = 5
_GONE: Final = "The sandbox does not run."
_OPEN_FILES: Final = 65_536


@dataclass(frozen=True, kw_only=True, slots=True)
class _Place:
    """Where something is run: in a holder that is there, or in one that is made for it."""

    spec: SandboxSpec
    folder: Path
    holder: RunningHolder | None
    conversation: Conversation
    sandbox: ControlGroup | None  # the one with the limits
    leaf: ControlGroup | None  # the command's own
    name: str = ""  # of the leaf, if the sandbox is one that stays
    leftovers_of: tuple[str, ...] = ()  # commands whose processes were ended to make room


class Starter:
    def __init__(self, *, enclosure: Enclosure, groups: ControlGroup | None, owner: Owner) -> None:
        self._enclosure = enclosure
        self._launcher = launcher = Launcher(root=enclosure.launcher_root)
        self._spares = Spares(launcher, groups)
        self._groups = groups
        self._owner = owner
        self._clearing: set[asyncio.Task[bool]] = set()
        self._leftovers: dict[SandboxId, Leftovers] = {}

    async def close(self) -> None:
        for clearing in tuple(self._clearing):
            await clearing
        await self._spares.close()
        await self._launcher.close()
        if self._groups is not None:
            self._groups.leave()

    def group_of(self, holder: RunningHolder) -> ControlGroup | None:
        return None if holder.group is None else group_at(holder.group)

    def forget(self, sandbox_id: SandboxId) -> None:
        """Nothing is left in it."""
        self._leftovers.pop(sandbox_id, None)

    def check(self, spec: SandboxSpec) -> None:
        """`InvalidInput` for what cannot be had in sandboxes of this kind."""
        self._enclosure.mounts(spec, folder_of(spec))

    async def hold(self, spec: SandboxSpec) -> RunningHolder:
        """Start a sandbox's holder, which outlives us."""
        folder = folder_of(spec)
        group = None if self._groups is None else self._groups.below(str(spec.id))
        leaf = None if group is None else group.below("holder")
        if group is not None and leaf is not None:
            group.make(spec.limits, extra_processes=_OURS)
            make_leaf(leaf)
        place = None if group is None else group.place
        line = self._enclosure.holder_line(spec, folder, ends_with_parent=False)
        mounts = self._enclosure.mounts(spec, folder)
        if not line:
            return RunningHolder.of_this_boot(0, 0, place)
        order = Order(
            task=Task.HOLD,
            uid=self._owner.uid,
            gid=self._owner.gid,
            holder=line,
            mounts=[place for _, place in mounts],
            filter=self._enclosure.filter(spec).hex(),
        )
        async with self._closed_after(await self._launcher.open(() if leaf is None else leaf.members)) as conversation:
            values = (await self._answered(conversation, order, mounts=mounts)).values
        return RunningHolder.of_this_boot(values["holder"], values["started"], place)

    async def connect(self, spec: SandboxSpec, holder: RunningHolder, path: PurePosixPath) -> socket.socket:
        order = Order(
            task=Task.CONNECT,
            uid=self._owner.uid,
            gid=self._owner.gid,
            process=holder.process,
            started=holder.started,
            path=self._enclosure.path(spec, path),
        )
        async with self._closed_after(await self._launcher.open()) as conversation:
            said = await self._answered(conversation, order)
        (descriptor,) = said.descriptors
        return socket.socket(fileno=descriptor)

    async def run(self, spec: SandboxSpec, holder: RunningHolder | None, command: Command) -> LaunchedExecution:
        """In this sandbox; without a holder in one that is made for the command and ends with it."""
        size = command.terminal
        bounds = [seconds for seconds in (command.timeout, spec.limits.max_execution_time) if seconds is not None]
        return await self._start(
            spec,
            holder,
            None if size is not None else Streams.pipes(has_input=command.has_input),
            has_input=command.has_input,
            words=words_of(command.argv),
            max_output=spec.limits.max_output,
            longest=min(bounds, default=None),
            task=Task.RUN,
            argv=command.argv,
            environment={
                **self._enclosure.environment(spec),
                **({} if size is None else {"TERM": "xterm-256color"}),
                **spec.environment,
                **command.environment,
            },
            path=self._enclosure.path(spec, command.cwd),
            terminal=None if size is None else (size.rows, size.columns),
        )

    async def archive(
        self, spec: SandboxSpec, holder: RunningHolder | None, task: Task, folder: PurePosixPath
    ) -> LaunchedExecution:
        """Pack a folder to standard output, or unpack standard input into it."""
        pipes = Streams.pipes(has_input=task is Task.UNPACK)
        path = self._enclosure.path(spec, folder)
        return await self._start(spec, holder, pipes, words=f"the {task} of files", task=task, path=path)

    async def _start(
        self,
        spec: SandboxSpec,
        holder: RunningHolder | None,
        pipes: Streams | None,
        *,
        words: str,
        has_input: bool = False,
        max_output: int | None = None,
        longest: float | None = None,
        **values: Any,
    ) -> LaunchedExecution:
        """Without `pipes` it comes with a terminal."""
        theirs = () if pipes is None else pipes.theirs
        try:
            async with self._place(spec, holder, words) as place:
                mounts = self._enclosure.mounts(spec, place.folder) if holder is None else ()
                order = self._order(place, mounts=[target for _, target in mounts], **values)
                said = await self._started(place, order, theirs, mounts=mounts)
                streams = pipes or Streams.terminal(said.descriptors[0], has_input=has_input)
                return self._followed(place, streams, max_output=max_output, longest=longest)
        except BaseException:
            if pipes is not None:
                pipes.close()
            raise
        finally:
            _close_all(theirs)

    @asynccontextmanager
    async def _place(self, spec: SandboxSpec, holder: RunningHolder | None, words: str) -> AsyncIterator[_Place]:
        """Nothing of it is left if it cannot be made, or the body fails."""
        folder = folder_of(spec)
        leftovers = self._leftovers.setdefault(spec.id, Leftovers()) if holder is not None else Leftovers()
        name = ""
        ended: tuple[str, ...] = ()
        conversation, sandbox, leaf = None, None, None
        try:
            if holder is None:
                spare = await self._spares.take()
                conversation, sandbox, leaf = spare.conversation, spare.group, spare.group
                if leaf is not None:
                    leaf.make(spec.limits, extra_processes=_OURS)
            else:
                sandbox, name = self.group_of(holder), f"exec-{uuid4().hex}"
                leaf = None if sandbox is None else sandbox.below(name)
                if sandbox is not None and leaf is not None:
                    most = spec.limits.max_processes
                    if most is not None and most + _OURS - sandbox.usage().processes < _OF_A_COMMAND:
                        ended = await leftovers.make_room(sandbox, most=most)
                    make_leaf(leaf)
                    leftovers.begin(name, words)
                conversation = await self._launcher.open()
            yield _Place(
                spec=spec,
                folder=folder,
                holder=holder,
                conversation=conversation,
                sandbox=sandbox,
                leaf=leaf,
                name=name,
                leftovers_of=ended,
            )
        except BaseException:
            if conversation is not None:
                conversation.close()
            leftovers.end(name)
            if leaf is not None:
                kill_group(leaf)  # whoever is held up does not hear that nobody listens
                await remove_group(leaf)
            raise

    def _order(self, place: _Place, **values: Any) -> Order:
        spec, holder, leaf = place.spec, place.holder, place.leaf
        if holder is None:
            values["holder"] = self._enclosure.holder_line(spec, place.folder, ends_with_parent=True)
        else:
            values |= {"process": holder.process, "started": holder.started}
            if leaf is not None:
                values |= {"groups": leaf.members, "stoppers": leaf.stoppers}
        return Order(
            uid=self._owner.uid,
            gid=self._owner.gid,
            limits=self._process_limits(spec),
            filter=self._enclosure.filter(spec).hex(),
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

    async def _started(
        self, place: _Place, order: Order, streams: tuple[int, ...], *, mounts: Sequence[tuple[Path, str]]
    ) -> Said:
        try:
            async with asyncio.timeout(_LONGEST_START):
                return await self._answered(place.conversation, order, streams, mounts=mounts)
        except MachineProblem:
            if place.holder is not None and not place.holder.is_there():
                raise Conflict(_GONE) from None
            if place.leaf is not None and place.leaf.usage().killed_for_memory:
                raise Conflict(NO_MEMORY) from None
            raise
        except TimeoutError:
            raise Unavailable(
                "A program in the sandbox keeps the command from starting; end the sandbox, and make a new one."
            ) from None

    async def _answered(
        self,
        conversation: Conversation,
        order: Order,
        streams: tuple[int, ...] = (),
        *,
        mounts: Sequence[tuple[Path, str]] = (),
    ) -> Said:
        """The first answer. `mounts`: the folders that a new holder gets."""
        with ExitStack() as own:
            handed = list(streams)
            if not streams:
                handed += [os.open(os.devnull, os.O_RDWR) for _ in range(3)]
                own.callback(_close_all, tuple(handed))
            for folder, _ in mounts:
                mount = _mount_of(folder)
                own.callback(os.close, mount)
                handed.append(mount)
            with contextlib.suppress(BrokenPipeError, ConnectionResetError):  # its last words are read below
                conversation.send(order, handed)
        return await _answer(conversation)

    @staticmethod
    @asynccontextmanager
    async def _closed_after(conversation: Conversation) -> AsyncIterator[Conversation]:
        try:
            yield conversation
        finally:
            conversation.close()

    def _clear_up(self, group: ControlGroup, *, holds_strays: bool) -> None:
        """Remove it soon: whoever told of the end is in it, too, and about to go. With strays it stays."""
        clearing = asyncio.create_task(remove_group(group, tries=_FEW_TRIES) if holds_strays else remove_group(group))
        self._clearing.add(clearing)
        clearing.add_done_callback(self._clearing.discard)

    async def _told(self, place: _Place, outcome: CommandOutcome) -> CommandOutcome:
        """With whose leftovers were ended for it: before it began, or now, if they are why it was refused processes."""
        ended = place.leftovers_of
        most, leftovers = place.spec.limits.max_processes, self._leftovers.get(place.spec.id)
        if place.holder is not None and place.sandbox is not None and leftovers is not None:
            leftovers.end(place.name)
            if outcome.forks_refused and most is not None:
                ended += await leftovers.make_room(place.sandbox, most=most)
        return replace(outcome, leftovers_of=ended)

    def _followed(
        self, place: _Place, streams: Streams, *, max_output: int | None, longest: float | None
    ) -> LaunchedExecution:
        account = GroupUsage.open(place.leaf, place.sandbox)
        watching: asyncio.Task[None] | None = None

        async def finish(ended: Ended) -> CommandOutcome:
            if watching is not None:
                watching.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await watching
            if place.leaf is not None and place.holder is not None and ended.is_killed:
                await emptied(place.leaf)  # who hears of the end may rely on it
            elif not ended.is_told and place.leaf is not None:
                kill_group(place.leaf)  # nobody is there who would
            outcome = await self._told(place, account.outcome(ended))
            if place.leaf is not None:
                self._clear_up(place.leaf, holds_strays=place.holder is not None)
            return outcome

        execution = LaunchedExecution(
            place.conversation, streams, max_output=max_output, longest=longest, finish=finish
        )
        most = place.spec.limits.max_disk
        if most is not None and not place.spec.is_read_only:
            watching = asyncio.create_task(watch_disk(place.folder, most, lambda: execution.stop(Limit.DISK)))
        return execution


def folder_of(spec: SandboxSpec) -> Path:
    if spec.folder is None:
        raise InvalidInput("Sandboxes of this kind work in a folder and hold no files themselves; Docker ones do.")
    if spec.image is not None:
        raise InvalidInput(f"Sandboxes of this kind have no images; the image {spec.image} needs Docker.")
    if not spec.folder.is_absolute():
        raise InvalidInput(f"The folder of a sandbox is an absolute path, not {spec.folder}.")
    for folder in (spec.folder, *(source for source, _ in spec.read_only), *((spec.home,) if spec.home else ())):
        if not folder.is_dir():
            raise InvalidInput(f"There is no folder {folder}.")
    return spec.folder


def _mount_of(folder: Path) -> int:
    try:
        return detach_mount(str(folder))
    except FileNotFoundError:
        raise InvalidInput(f"There is no folder {folder}.") from None


async def _answer(conversation: Conversation) -> Said:
    said = await conversation.receive()
    if said is None:
        raise MachineProblem("The process that gets into the sandbox was ended from outside.")
    why = said.values.get("why")
    match said.values.get("refused"):
        case None:
            return said
        case StartRefusal.FOLDER:
            raise InvalidInput(f"The command cannot start in its folder: {why}.")
        case StartRefusal.GONE:
            raise Conflict(_GONE)
        case StartRefusal.NOBODY:
            raise Unavailable(f"Nobody listens on that socket: {why}.")
        case _:
            raise MachineProblem(f"No sandbox can be made on this machine: {why}.")


def _close_all(descriptors: tuple[int, ...]) -> None:
    for descriptor in descriptors:
        os.close(descriptor)
