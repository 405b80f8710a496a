"""Session snapshots: what a session has beside the project's committed files, stored by content and put back elsewhere.

A snapshot has the session's own files (see `state_files.py`) and the work in its folder that is not committed, each
path with the base it was made from. Together with the project's snapshots that is all a conversation needs to go on in
another process, sandbox or machine.
"""

import asyncio
import os
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

import asyncpg

from contextbase.db.database import Database
from contextbase.errors import BlobCorrupted, BlobMissing, Conflict
from contextbase.ids import ContentHash, TreePath, new_uuid
from contextbase.sessions.model import AgentSession, RunId
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.snapshot_model import SessionFile, SessionSnapshot, SnapshotId, SnapshotReason, StoredPiece
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.sessions.state_files import StateFile, StateLimits, StateRules, state_files
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.commit_plan import CommittedPath, PendingChange
from contextbase.workspaces.contents import open_content
from contextbase.workspaces.editor import FolderEditor
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.place_reads import PlaceReads
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from contextbase.workspaces.sender import ScanResult
from contextbase.workspaces.service import WorkspaceService

__all__ = ["SessionSnapshots"]

_PIECE: Final = 1 << 20
_TRIES: Final = 5
_MOST_PIECES: Final = 64  # of one file; then it is stored as a whole again
_BATCH_FILES: Final = 500  # that are put back in one go
_BATCH_BYTES: Final = 16 << 20
_GROWING: Final = b".jsonl"  # files that programs only append to
_KEPT: Final = 3  # of each session, beside one for each run
_KEEPS_FILES: Final = "session_snapshots_keep_their_files"


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionSnapshots:
    database: Database
    catalog: BlobCatalog
    repository: SnapshotRepository
    registry: WorkspaceRepository
    workspaces: WorkspaceService
    rules: StateRules
    sessions: SessionRepository = field(default_factory=SessionRepository)
    limits: StateLimits = field(default_factory=StateLimits)

    async def take(
        self,
        session: AgentSession,
        reason: SnapshotReason,
        *,
        run_id: RunId | None = None,
        message_id: str | None = None,
    ) -> SessionSnapshot:
        """Store what the session has now; when this returns all of it was found in the store. A program may write on
        meanwhile: each file is as it was at some moment. Raises `NotFound` when the session has no folder here."""
        for left in reversed(range(_TRIES)):
            try:
                return await self._take(session, reason, run_id, message_id)
            except BlobCorrupted:  # a file was another when it was stored
                if not left:
                    raise Conflict(
                        "A program writes to the session's files all the time, so that no whole copy of them could be "
                        "stored. It is tried again."
                    ) from None
            except asyncpg.ForeignKeyViolationError as error:
                # GC removed a content right after it was stored: store it again.
                if not left or error.constraint_name != _KEEPS_FILES:
                    raise
            await asyncio.sleep(0)
        raise AssertionError("unreachable")

    async def newest(self, session: AgentSession) -> SessionSnapshot | None:
        async with self.database.connection() as connection:
            return await self.repository.newest(connection, session.id)

    async def get(self, snapshot_id: SnapshotId) -> SessionSnapshot | None:
        async with self.database.connection() as connection:
            return await self.repository.get(connection, snapshot_id)

    async def restore(self, snapshot: SessionSnapshot, record: WorkspaceRecord, *, below: str | None = None) -> int:
        """Put what the snapshot has, or has below a folder, into the session's new folder; returns how many entries
        that were. Work that was not committed keeps the base it was made from. Done again, it changes nothing."""
        async with self.database.connection() as connection:
            files = await self.repository.files(connection, snapshot.id)
        if below is not None:
            files = [file for file in files if file.name.startswith(os.fsencode(f"{below}/"))]
        owner = self.workspaces.node.owner
        work = {TreePath.stored(os.fsdecode(file.name)): file for file in files if file.base is not None}
        await self._hold(record, work)
        for batch in _batches(files):
            if batch[0].size > _BATCH_BYTES:
                await self._put_large(record.path, owner, batch[0])
                continue
            contents = await self.catalog.read_all({piece.hash for file in batch for piece in file.pieces})
            await in_thread(_put, record.path, owner, batch, contents)
        await in_thread(_sync, record.path, owner)  # whoever was cut off before this does all of it again
        return len(files)

    async def _put_large(self, work: Path, owner: Owner, file: SessionFile) -> None:
        """Part by part: it may not fit into memory."""
        await in_thread(_put, work, owner, [replace(file, pieces=())], {})
        for piece in file.pieces:
            async with aclosing(self.catalog.get(piece.hash)) as parts:
                async for part in parts:
                    await in_thread(_append, work, owner, file, part)

    async def _hold(self, record: WorkspaceRecord, work: Mapping[TreePath, SessionFile]) -> None:
        """Later edits of these paths are made from the snapshots that the agent had."""
        bases = {path: file.base for path, file in work.items() if file.base is not None}
        if not bases:
            return
        async with self.database.transaction() as connection:
            standing = await PlaceReads(self.registry, record).nodes_at_each(connection, bases)
            held = {
                path: CommittedPath(base=base, content=standing[path][1] if path in standing else None)
                for path, base in bases.items()
            }
            await self.registry.hold_restored(connection, record.id, held)

    async def _take(
        self, session: AgentSession, reason: SnapshotReason, run_id: RunId | None, message_id: str | None
    ) -> SessionSnapshot:
        record, look = await self.workspaces.status(session.caller(), session.project_id)
        work = await (await self.workspaces.node.site()).provider.work_folder(record.id)
        found = await in_thread(_found, work, look, self.rules, self.limits)
        earlier = await self._earlier(session)
        files = [await self._stored(work, one, earlier.get(one.name)) for one in found]
        changed = {one.name for one in found}
        for change in look.changes:
            files += [one for one in await self._stored_change(work, change) if one.name not in changed]
        snapshot = SessionSnapshot(
            id=SnapshotId(new_uuid()),
            session_id=session.id,
            run_id=run_id,
            message_id=message_id,
            project_id=session.project_id,
            epoch=record.epoch,
            base=record.shown,
            reason=reason,
            files=len(files),
            bytes=sum(file.size for file in files),
        )
        await self._verify(files)
        async with self.database.transaction() as connection:
            known = await self.sessions.sdk_session_ids(connection, session.id)
            snapshot = replace(snapshot, sdk_session_ids=known)
            await self.repository.insert(connection, snapshot, files)
            await self.repository.prune(connection, session.id, kept=_KEPT)
        return snapshot

    async def _earlier(self, session: AgentSession) -> dict[bytes, SessionFile]:
        async with self.database.connection() as connection:
            newest = await self.repository.newest(connection, session.id)
            files = [] if newest is None else await self.repository.files(connection, newest.id)
        return {file.name: file for file in files}

    async def _stored(self, work: Path, found: StateFile, earlier: SessionFile | None) -> SessionFile:
        if found.kind is Kind.DIRECTORY:
            return SessionFile(name=found.name, kind=found.kind)
        if found.kind is Kind.SYMLINK:
            target = await in_thread(_link_target, work, found.name)
            return SessionFile(name=found.name, kind=found.kind, pieces=(await self._put(target),))
        try:
            descriptor = await in_thread(_open, work, found.name)
        except FileNotFoundError:
            return SessionFile(name=found.name, kind=Kind.FILE, pieces=(await self._put(b""),))
        try:
            kept, start = await in_thread(_unchanged, descriptor, earlier, found)
            rest = await self.catalog.put(_pieces_of(descriptor, start, found.size))
            pieces: tuple[StoredPiece, ...] = (
                (*kept, StoredPiece(hash=rest.hash, size=rest.size)) if rest.size or not kept else kept
            )
        finally:
            os.close(descriptor)
        return SessionFile(name=found.name, kind=Kind.FILE, pieces=pieces, executable=found.executable)

    async def _stored_change(self, work: Path, change: PendingChange) -> list[SessionFile]:
        """A rename is what is gone and what is there: its node is found again by content, if at all."""
        name, content = os.fsencode(change.path), change.content
        files = []
        if change.renamed_from is not None:
            files.append(SessionFile(name=os.fsencode(change.renamed_from), kind=Kind.DELETED, base=change.base))
        if content is None:
            return [*files, SessionFile(name=name, kind=Kind.DELETED, base=change.base)]
        pieces: tuple[StoredPiece, ...] = ()
        if content.hash is not None:
            pieces = (await self._put_change(work, change, content.hash),)
        file = SessionFile(name=name, kind=content.kind, pieces=pieces, executable=content.executable, base=change.base)
        return [*files, file]

    async def _put_change(self, work: Path, change: PendingChange, expected: ContentHash) -> StoredPiece:
        """`BlobCorrupted` when the file is another by now."""
        content = change.content
        if content is not None and content.kind is Kind.SYMLINK:
            return await self._put(await in_thread(_link_target, work, os.fsencode(change.path)))
        try:
            descriptor = await in_thread(open_content, change, work)
        except OSError as error:
            raise BlobCorrupted(f"{change.path} was taken away while it was stored.") from error
        try:
            stored = await self.catalog.put(_pieces_of(descriptor, 0, None), expected=expected)
        finally:
            os.close(descriptor)
        return StoredPiece(hash=stored.hash, size=stored.size)

    async def _put(self, content: bytes) -> StoredPiece:
        stored = await self.catalog.put(_one(content))
        return StoredPiece(hash=stored.hash, size=stored.size)

    async def _verify(self, files: Sequence[SessionFile]) -> None:
        """Nothing is stopped or removed because of a row alone: the bytes must be there."""
        for piece in {piece for file in files for piece in file.pieces}:
            size = await self.catalog.store.size(piece.hash)
            if size != piece.size:
                raise BlobMissing(f"The content {piece.hash.hex()} of a session's file is not in the blob store.")


def _found(work: Path, look: ScanResult, rules: StateRules, limits: StateLimits) -> list[StateFile]:
    with Folder(work) as folder:
        return state_files(folder, look.found, rules, limits)


def _open(work: Path, name: bytes) -> int:
    with Folder(work) as folder:
        return folder.open_file(os.fsdecode(name))


def _link_target(work: Path, name: bytes) -> bytes:
    with Folder(work) as folder:
        return folder.link_target(os.fsdecode(name))


def _unchanged(descriptor: int, earlier: SessionFile | None, found: StateFile) -> tuple[tuple[StoredPiece, ...], int]:
    """The pieces of the last snapshot that the file still begins with, and how many bytes they are: all of them or, for
    a file that was not only appended to, none."""
    if earlier is None or earlier.kind is not Kind.FILE or len(earlier.pieces) >= _MOST_PIECES:
        return (), 0
    is_growing = found.name.endswith(_GROWING)
    if earlier.size > found.size or not (is_growing or earlier.size == found.size):
        return (), 0
    offset = 0
    for piece in earlier.pieces:
        if ContentHash.of(os.pread(descriptor, piece.size, offset)) != piece.hash:
            return (), 0
        offset += piece.size
    return earlier.pieces, offset


def _batches(files: Iterable[SessionFile]) -> Iterator[list[SessionFile]]:
    """A file that is larger than a batch may be comes alone."""
    batch: list[SessionFile] = []
    size = 0
    for file in files:
        if batch and (len(batch) >= _BATCH_FILES or size + file.size > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(file)
        size += file.size
    if batch:
        yield batch


def _put(work: Path, owner: Owner, files: Iterable[SessionFile], contents: Mapping[ContentHash, bytes]) -> None:
    """Entries in the folder, in the place of whatever has their names; a folder with something in it stays."""
    with FolderEditor(work, owner=owner) as editor:
        for file in files:
            path = TreePath.stored(os.fsdecode(file.name))
            if file.kind is Kind.DIRECTORY:
                editor.make_folder(path)
                continue
            if file.kind is Kind.DELETED:
                with suppress(FileNotFoundError, NotADirectoryError), editor.parent_of(path, make=False) as parent:
                    _remove(parent, path.name)
                continue
            with editor.parent_of(path, make=True) as parent:
                with suppress(FileNotFoundError):
                    _remove(parent, path.name)
                kind = FolderContent(kind=file.kind, executable=file.executable)
                content = b"".join([contents[piece.hash] for piece in file.pieces])
                editor.write_entry(parent, path.name, kind, content)


def _append(work: Path, owner: Owner, file: SessionFile, content: bytes) -> None:
    path = TreePath.stored(os.fsdecode(file.name))
    flags = os.O_WRONLY | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
    with (
        FolderEditor(work, owner=owner) as editor,
        editor.parent_of(path, make=False) as parent,
        open(os.open(path.name, flags, dir_fd=parent), "wb") as target,  # noqa: PTH123 - dir_fd
    ):
        target.write(content)


def _sync(work: Path, owner: Owner) -> None:
    with FolderEditor(work, owner=owner) as editor:
        editor.sync()


def _remove(parent: int, name: str) -> None:
    try:
        os.unlink(name, dir_fd=parent)
    except IsADirectoryError:
        with suppress(OSError):  # something is in it
            os.rmdir(name, dir_fd=parent)


async def _one(content: bytes) -> AsyncIterator[bytes]:
    yield content


async def _pieces_of(descriptor: int, start: int, end: int | None) -> AsyncIterator[bytes]:
    """What is written on past `end` belongs to the next snapshot."""
    offset = start
    while end is None or offset < end:
        asked = _PIECE if end is None else min(_PIECE, end - offset)
        piece = await in_thread(os.pread, descriptor, asked, offset)
        if not piece:
            return
        offset += len(piece)
        yield piece
