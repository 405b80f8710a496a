"""A driver whose commands the launcher starts: what the port promises, with records on disk."""

import asyncio
import contextlib
import os
import signal
import weakref
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path, PurePosixPath
from typing import Final

from contextbase.errors import Conflict, InvalidInput, MachineProblem
from contextbase.sandbox.cgroups import find_groups, remove_group
from contextbase.sandbox.channel import SocketChannel
from contextbase.sandbox.descriptors import Descriptor, one_of
from contextbase.sandbox.enclosure import Enclosure
from contextbase.sandbox.execution import LaunchedExecution
from contextbase.sandbox.model import (
    Command,
    OutputStream,
    SandboxId,
    SandboxInfo,
    SandboxSpec,
    SandboxState,
    SandboxStats,
    StorageProof,
)
from contextbase.sandbox.native.launcher.archives import HOSTILE, MISSING
from contextbase.sandbox.native.launcher.order import Task
from contextbase.sandbox.native.starter import Starter, folder_of
from contextbase.sandbox.ports import ByteChannel
from contextbase.sandbox.records import Records, RunningHolder, SandboxSpecRecord
from contextbase.workspaces.model import Owner

__all__ = ["NativeDriver"]

_LONGEST_END: Final = 5  # seconds


@dataclass(frozen=True, kw_only=True, slots=True)
class _Prepared:
    launching: Starter
    limits_by: str


class NativeDriver:
    """`root` is a folder of this driver's own, `node` a name that no other driver on this machine has. `prepare` is
    called in a thread when the driver is first used, and raises when this machine cannot do what it is for."""

    def __init__(self, name: str, root: Path, *, owner: Owner, node: str, prepare: Callable[[], Enclosure]) -> None:
        self._name = name
        self._root = root
        self._owner = owner
        self._node = node
        self._prepare = prepare
        self._records = Records(root / "sandboxes")
        self._preparing = asyncio.Lock()
        self._prepared: _Prepared | None = None
        self._locks: weakref.WeakValueDictionary[SandboxId, asyncio.Lock] = weakref.WeakValueDictionary()
        self._executions: dict[LaunchedExecution, SandboxId] = {}

    @property
    def name(self) -> str:
        return self._name

    async def limits_by(self) -> str:
        """A sentence for the operator: what holds commands to their limits here."""
        return (await self._ready()).limits_by

    async def create(self, spec: SandboxSpec) -> SandboxInfo:
        folder_of(spec)
        (await self._launching()).check(spec)
        async with self._lock(spec.id):
            record = SandboxSpecRecord(spec=spec, created_at=datetime.now(UTC))
            return self._info(await asyncio.to_thread(self._records.create, record))

    async def start(self, sandbox_id: SandboxId) -> None:
        launching = await self._launching()
        async with self._lock(sandbox_id):
            record = self._records.read(sandbox_id)
            if self._running(sandbox_id) is None:
                await self._clear(sandbox_id)
                self._records.set_holder(sandbox_id, await launching.hold(record.spec))

    async def stop(self, sandbox_id: SandboxId) -> None:
        async with self._lock(sandbox_id):
            self._records.read(sandbox_id)
            await self._end(sandbox_id)

    async def remove(self, sandbox_id: SandboxId, *, proof: StorageProof | None = None) -> None:
        del proof  # the folder has the files, and stays
        async with self._lock(sandbox_id):
            self._records.read(sandbox_id)
            await self._end(sandbox_id)
            await asyncio.to_thread(self._records.remove, sandbox_id)

    async def inspect(self, sandbox_id: SandboxId) -> SandboxInfo:
        return self._info(await asyncio.to_thread(self._records.read, sandbox_id))

    async def found(self) -> list[SandboxInfo]:
        return [self._info(record) for record in await asyncio.to_thread(self._records.all)]

    async def exec(self, sandbox_id: SandboxId, command: Command) -> LaunchedExecution:
        launching = await self._launching()
        record = self._records.read(sandbox_id)
        return self._followed(sandbox_id, await launching.run(record.spec, self._held(sandbox_id), command))

    async def run(self, spec: SandboxSpec, command: Command) -> LaunchedExecution:
        launching = await self._launching()
        return self._followed(spec.id, await launching.run(spec, None, command))

    async def copy_in(self, sandbox_id: SandboxId, folder: PurePosixPath, archive: AsyncIterator[bytes]) -> None:
        launching = await self._launching()
        spec = self._records.read(sandbox_id).spec
        started = await launching.archive(spec, self._running(sandbox_id), Task.UNPACK, folder)
        execution = self._followed(sandbox_id, started)
        complaint = asyncio.create_task(_complaint(execution))
        try:
            with contextlib.suppress(Conflict):  # it reads no further when it has something to say
                async for piece in archive:
                    await execution.write(piece)
            await execution.end_input()
            await _expect_success(execution, folder, complaint)
        finally:
            await execution.kill()
            await complaint

    async def copy_out(self, sandbox_id: SandboxId, folder: PurePosixPath) -> AsyncIterator[bytes]:
        launching = await self._launching()
        spec = self._records.read(sandbox_id).spec
        started = await launching.archive(spec, self._running(sandbox_id), Task.PACK, folder)
        execution = self._followed(sandbox_id, started)
        said: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        errors = b""
        try:
            async for output in execution.output():
                if output.stream is OutputStream.STDOUT:
                    yield output.data
                else:
                    errors += output.data
            said.set_result(errors.decode(errors="replace"))
            await _expect_success(execution, folder, said)
        finally:
            await execution.kill()

    async def stats(self, sandbox_id: SandboxId) -> SandboxStats:
        launching = await self._launching()
        self._records.read(sandbox_id)
        group = launching.group_of(self._held(sandbox_id))
        if group is None:
            raise MachineProblem("A sandbox's usage can only be measured where there are control groups.")
        usage = await asyncio.to_thread(group.usage)
        return SandboxStats(
            memory=usage.memory or 0,
            peak_memory=usage.peak_memory,
            cpu_seconds=usage.cpu_seconds or 0.0,
            processes=usage.processes,
        )

    async def connect(self, sandbox_id: SandboxId, socket: PurePosixPath) -> ByteChannel:
        launching = await self._launching()
        spec = self._records.read(sandbox_id).spec
        return SocketChannel(await launching.connect(spec, self._held(sandbox_id), socket))

    async def close(self) -> None:
        for execution in tuple(self._executions):
            await execution.kill()
        if self._prepared is not None:
            await self._prepared.launching.close()
            self._prepared = None

    async def _launching(self) -> Starter:
        return (await self._ready()).launching

    async def _ready(self) -> _Prepared:
        async with self._preparing:
            if self._prepared is None:
                self._root.mkdir(mode=0o700, parents=True, exist_ok=True)
                enclosure = await asyncio.to_thread(self._prepare)
                groups, sentence = await asyncio.to_thread(find_groups, self._node)
                if groups is not None:
                    await asyncio.to_thread(groups.clear_old)
                launching = Starter(enclosure=enclosure, groups=groups, owner=self._owner)
                self._prepared = _Prepared(launching=launching, limits_by=sentence)
            return self._prepared

    def _lock(self, sandbox_id: SandboxId) -> asyncio.Lock:
        return self._locks.setdefault(sandbox_id, asyncio.Lock())

    def _followed(self, sandbox_id: SandboxId, execution: LaunchedExecution) -> LaunchedExecution:
        self._executions[execution] = sandbox_id
        execution.when_ended(lambda: self._executions.pop(execution, None))
        return execution

    def _info(self, record: SandboxSpecRecord) -> SandboxInfo:
        sandbox_id = record.spec.id
        if self._running(sandbox_id) is not None:
            state = SandboxState.RUNNING
        else:
            state = SandboxState.CREATED if self._records.holder(sandbox_id) is None else SandboxState.STOPPED
        return SandboxInfo(
            id=sandbox_id,
            driver=self.name,
            state=state,
            holds_files=False,
            labels=record.spec.labels,
            created_at=record.created_at,
        )

    def _running(self, sandbox_id: SandboxId) -> RunningHolder | None:
        holder = self._records.holder(sandbox_id)
        return holder if holder is not None and holder.is_there() else None

    def _held(self, sandbox_id: SandboxId) -> RunningHolder:
        holder = self._running(sandbox_id)
        if holder is None:
            raise Conflict(f"Sandbox {sandbox_id} does not run; start it first.")
        return holder

    async def _end(self, sandbox_id: SandboxId) -> None:
        holder = self._running(sandbox_id)
        if holder is not None and holder.process:
            await _end_holder(holder)
        if holder is not None:
            self._records.set_holder(sandbox_id, replace(holder, is_stopped=True))
            for execution in [one for one, of in self._executions.items() if of == sandbox_id]:
                await execution.kill()
        await self._clear(sandbox_id)

    async def _clear(self, sandbox_id: SandboxId) -> None:
        """The groups of one that does not run."""
        holder = self._records.holder(sandbox_id)
        group = None if holder is None else (await self._launching()).group_of(holder)
        if group is not None and not await remove_group(group):
            raise MachineProblem(f"Processes of sandbox {sandbox_id} cannot be ended.")
        if self._prepared is not None:
            self._prepared.launching.forget(sandbox_id)


async def _end_holder(holder: RunningHolder) -> None:
    """With the first process of a sandbox the kernel ends all of them."""
    with contextlib.suppress(ProcessLookupError):
        handle = Descriptor(os.pidfd_open(holder.process))
        if holder.is_there():
            signal.pidfd_send_signal(handle.fileno(), signal.SIGKILL)
            never: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            with contextlib.suppress(TimeoutError):  # who is left is found in its groups
                async with asyncio.timeout(_LONGEST_END):
                    await one_of(readable=[handle.fileno()], done=never)
        handle.close()


async def _complaint(execution: LaunchedExecution) -> str:
    said = [output.data async for output in execution.output() if output.stream is OutputStream.STDERR]
    return b"".join(said).decode(errors="replace")


async def _expect_success(execution: LaunchedExecution, folder: PurePosixPath, said: "asyncio.Future[str]") -> None:
    outcome = await execution.wait()
    if outcome.succeeded:
        return
    why = await said or f"stopped by {outcome.stopped_by or outcome.signal}"
    if outcome.exit_code in (HOSTILE, MISSING):
        raise InvalidInput(f"Files of {folder} cannot be copied: {why}.")
    raise Conflict(f"Files of {folder} cannot be copied: {why}.")
