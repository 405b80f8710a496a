"""Sessions whose workspace is in a container's own writable layer: nothing of this machine is bound into it.

The session's folder here is the side that lands, is refreshed, composed and stored, as for every session. Before a run,
what others did to it is brought into the container; while the agent works and after that, what the agent did is brought
back. A container goes only against a proof that all it has was brought back.
"""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from tarfile import TarError
from typing import Final
from uuid import uuid4

from contextbase.commands.driver import MachineDriver
from contextbase.commands.occupancy import Occupancy
from contextbase.errors import NotFound, SetupFailed, TooLarge, Unavailable
from contextbase.ids import ContentHash
from contextbase.sandbox.model import WORKSPACE, SandboxId, SandboxState, StorageProof
from contextbase.sandbox.ports import SandboxDriver
from contextbase.sessions.executor_link import ExecutorLink
from contextbase.sessions.folder_agreement import (
    Agreement,
    given_archive,
    read_agreement,
    take_archive,
    write_agreement,
)
from contextbase.sessions.model import AgentSession, SessionId
from contextbase.sessions.snapshot_model import SnapshotReason
from contextbase.sessions.state_files import StateRules
from contextbase.threads import in_thread
from contextbase.workspaces.ignore_rules import AGENT_DATA
from contextbase.workspaces.model import Owner
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["ContainerFiles"]

_DRIVER: Final = "docker"
_NOT_BROUGHT_BACK: Final = frozenset({".claude", ".codex", ".opencode", ".contextbase"})  # at the root
_OUTDATED: Final = 409
_PIECE: Final = 1 << 18
_MOST_BYTES: Final = 64 << 30


@dataclass(frozen=True, kw_only=True, slots=True)
class ContainerFiles:
    driving: MachineDriver
    occupancy: Occupancy
    rules: StateRules
    owner: Owner
    folder: Path  # for what is known of containers, and archives on their way

    async def driver(self) -> SandboxDriver:
        """Raises `SetupFailed` if this machine's sandboxes hold no files of their own."""
        driver = await self.driving.driver()
        if driver.name != _DRIVER:
            raise SetupFailed(
                f"The session's configuration wants a container of its own (workspace_kind), and this machine runs "
                f"sandboxes with {driver.name}. Set sandbox_driver to {_DRIVER} there, or workspace_kind to folder."
            )
        return driver

    async def is_new(self, session_id: SessionId, sandbox_id: SandboxId) -> bool:
        """Whether nothing of the session was ever brought into the container."""
        found = await self._agreement(session_id, sandbox_id)
        return found.token is None and not found.entries

    async def send(self, session: AgentSession, record: WorkspaceRecord, link: ExecutorLink, at: SandboxId) -> None:
        """What others did in the folder, into the container."""
        for is_last in (False, True):
            agreed = await self._agreement(session.id, at)
            async with self._spool() as archive:
                now = await in_thread(given_archive, record.path, archive, agreed.entries)
                if now is None:
                    return
                since = f"?since={agreed.token}" if agreed.token else ""
                told = await link.upload(f"/workspace/restore{since}", _read(archive))
            if told.status != _OUTDATED or is_last:
                break
            # Another executor than the one that we sent to last: it must look at the files first.
            await self.bring_back(session, record, link, SnapshotReason.CATCH_UP)
        answer, entries = told.checked(), dict(now or {})
        for path in answer.get("kept") or ():  # the agent changed it in this moment: the next sync brings it back
            entries.pop(path, None)
            if path in agreed.entries:
                entries[path] = agreed.entries[path]
        new = Agreement(container=agreed.container, token=str(answer.get("token")), entries=entries)
        await in_thread(write_agreement, self._place(session.id), new)

    async def bring_back(
        self, session: AgentSession, record: WorkspaceRecord, link: ExecutorLink | None, reason: SnapshotReason
    ) -> StorageProof | None:
        """What the agent did, into the folder. The proof is of a container that does not run; None: it runs, or there
        is none."""
        sandbox = await self.occupancy.sandbox_of(record.id)
        if sandbox is None:
            return None
        driver = await self.driving.driver(sandbox.driver)
        try:
            is_running = (await driver.inspect(sandbox.id)).state is SandboxState.RUNNING
            agreed = await self._agreement(session.id, sandbox.id)
            async with self._spool() as archive:
                if not (is_running and link is not None and await _synced(link, agreed, reason, archive)):
                    digest = await _copied(driver, sandbox.id, archive)
                else:
                    digest = None
                try:
                    taken = await in_thread(
                        take_archive, record.path, self.owner, archive, agreed.entries, self._is_brought_back
                    )
                except (TarError, ValueError, KeyError, TypeError) as error:
                    raise Unavailable(f"The archive of the container's files is damaged: {error}") from None
        except NotFound:  # somebody removed it: what it had is in the folder and the last snapshot
            await in_thread(self._place(session.id).unlink, missing_ok=True)
            return None
        token = taken.token or agreed.token
        new = Agreement(container=agreed.container, token=token, entries=taken.entries)
        await in_thread(write_agreement, self._place(session.id), new)
        return None if is_running or digest is None else StorageProof(archive=digest)

    async def stop(self, record: WorkspaceRecord) -> None:
        sandbox = await self.occupancy.sandbox_of(record.id)
        if sandbox is not None:
            try:
                await (await self.driving.driver(sandbox.driver)).stop(sandbox.id)
            except NotFound:
                return

    async def forget(self, session_id: SessionId) -> None:
        await in_thread(self._place(session_id).unlink, missing_ok=True)

    async def _agreement(self, session_id: SessionId, sandbox_id: SandboxId) -> Agreement:
        """About this container: a new one of the same name has nothing."""
        container = (await (await self.driving.driver()).inspect(sandbox_id)).created_at.isoformat()
        found = await in_thread(read_agreement, self._place(session_id))
        return found if found is not None and found.container == container else Agreement(container=container)

    def _is_brought_back(self, path: str) -> bool:
        top = path.partition("/")[0]
        return top not in _NOT_BROUGHT_BACK and (top != AGENT_DATA or self.rules.takes(path))

    def _place(self, session_id: SessionId) -> Path:
        return self.folder / f"{session_id}.json"

    @asynccontextmanager
    async def _spool(self) -> AsyncIterator[Path]:
        await in_thread(self.folder.mkdir, mode=0o700, parents=True, exist_ok=True)
        archive = self.folder / f"{uuid4().hex}.tar"
        try:
            yield archive
        finally:
            await in_thread(archive.unlink, missing_ok=True)


async def _synced(link: ExecutorLink, agreed: Agreement, reason: SnapshotReason, archive: Path) -> bool:
    """Through the executor: what changed alone. False: it cannot be reached."""
    query = f"?as=archive&reason={reason}" + (f"&since={agreed.token}" if agreed.token else "")
    try:
        await _written(archive, link.download(f"/workspace/sync{query}", method="POST"))
    except Unavailable:
        return False
    return True


async def _copied(driver: SandboxDriver, sandbox_id: SandboxId, archive: Path) -> ContentHash:
    """Through the engine: everything."""
    return await _written(archive, driver.copy_out(sandbox_id, PurePosixPath(WORKSPACE)))


async def _written(archive: Path, pieces: AsyncIterator[bytes]) -> ContentHash:
    digest, size = hashlib.sha256(), 0
    with await in_thread(archive.open, "wb") as file:
        async for piece in pieces:
            digest.update(piece)
            size += len(piece)
            if size > _MOST_BYTES:
                raise TooLarge(f"The files of the container have more than {_MOST_BYTES} bytes.")
            await in_thread(file.write, piece)
    return ContentHash(digest.digest())


async def _read(archive: Path) -> AsyncGenerator[bytes, None]:
    with await in_thread(archive.open, "rb") as file:
        while piece := await in_thread(file.read, _PIECE):
            yield piece
