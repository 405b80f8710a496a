"""Session snapshots: what a session has beside the project's committed files, stored by content and put back elsewhere.

A snapshot has the session's own files (see `state_files.py`) and the work in its folder that is not committed, each
path with the base it was made from. Together with the project's snapshots that is all a conversation needs to go on in
another process, sandbox or machine.
"""

import asyncio
import errno
import hashlib
import os
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, TypeVar

import asyncpg

from contextbase.db.database import Database
from contextbase.errors import BlobCorrupted, BlobMissing, Conflict
from contextbase.gate.service import Gate
from contextbase.ids import ContentHash, TreePath, new_uuid
from contextbase.sessions.model import AgentSession, RunId
from contextbase.sessions.repository import SessionRepository
from contextbase.sessions.restored_files import append_to, put_entries, remove_entries, sync_folder
from contextbase.sessions.snapshot_model import SessionFile, SessionSnapshot, SnapshotId, SnapshotReason, StoredPiece
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.sessions.state_files import StateFile, StateLimits, StateRules, state_files
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.commit_plan import CommittedPath, PendingChange
from contextbase.workspaces.contents import open_content, read_contents
from contextbase.workspaces.editor import FolderEditor
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.place_reads import PlaceReads
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository
from contextbase.workspaces.sender import ScanResult
from contextbase.workspaces.service import WorkspaceService

__all__ = ["SessionSnapshots"]

Item = TypeVar("Item")

_PIECE: Final = 1 << 20
_TRIES: Final = 5
_MOST_PIECES: Final = 64  # of one file; then it is stored as a whole again
_BATCH_FILES: Final = 500  # that are stored, or put back, in one go
_BATCH_BYTES: Final = 16 << 20
_GROWING: Final = b".jsonl"  # files that programs only append to
_KEPT: Final = 3  # of each session, beside one for each run
_KEEPS_FILES: Final = "session_snapshots_keep_their_files"
_OF_ANOTHER_KIND: Final = {errno.EINVAL, errno.ELOOP, errno.ENOTDIR, errno.ENXIO}


@dataclass(frozen=True, kw_only=True, slots=True)
class SessionSnapshots:
    database: Database
    gate: Gate
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
        meanwhile: each file is as it was at some moment. What was purged from the project is not stored again. Raises
        `NotFound` when the session has no folder here."""
        anew = False
        for left in reversed(range(_TRIES)):
            try:
                return await self._take(session, reason, run_id, message_id, anew=anew)
            except BlobMissing:  # the blob store has lost what the last snapshot has
                if anew or not left:
                    raise
                anew = True
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
        await self._take_away(record, [path for path, file in work.items() if file.kind is Kind.DELETED])
        there = [file for file in files if file.kind is not Kind.DELETED]
        for batch in _batches(there, lambda file: file.size):
            if batch[0].size > _BATCH_BYTES:
                await self._put_large(record.path, owner, batch[0])
                continue
            contents = await self.catalog.read_all({piece.hash for file in batch for piece in file.pieces})
            await in_thread(put_entries, record.path, owner, batch, contents)
        await in_thread(sync_folder, record.path, owner)  # whoever was cut off before this does all of it again
        return len(files)

    async def _take_away(self, record: WorkspaceRecord, gone: Collection[TreePath]) -> None:
        """With the folders that nothing is left in, but for those that are nodes. Before what is put back: a file may
        take the place of a folder."""
        folders = {folder for path in gone for folder in path.folders}
        async with self.database.connection() as connection:
            nodes = await PlaceReads(self.registry, record).nodes_at(connection, record.shown, folders)
        left = folders - {path for path, content in nodes.items() if content.kind is Kind.DIRECTORY}
        await in_thread(remove_entries, record.path, self.workspaces.node.owner, gone, left)

    async def _put_large(self, work: Path, owner: Owner, file: SessionFile) -> None:
        """Part by part: it may not fit into memory."""
        [place] = await in_thread(put_entries, work, owner, [replace(file, pieces=())], {})
        for piece in file.pieces:
            async with aclosing(self.catalog.get(piece.hash)) as parts:
                async for part in parts:
                    await in_thread(append_to, work, owner, place, part)

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
        self,
        session: AgentSession,
        reason: SnapshotReason,
        run_id: RunId | None,
        message_id: str | None,
        *,
        anew: bool,
    ) -> SessionSnapshot:
        """`anew`: also what the last snapshot has is stored again."""
        record, look = await self.workspaces.status(session.caller(), session.workspace)
        work = await (await self.workspaces.node.site()).provider.work_folder(record.id)
        found = await in_thread(self._found, work, look)
        earlier = {} if anew else await self._earlier(session)
        stored = [await self._stored(work, one, earlier.get(one.name)) for one in found]
        names = {one.name for one in found}
        files = [file for file in stored if file is not None]
        files += [file for change in look.changes for file in _uncommitted(change) if file.name not in names]
        purged = await self._purged(session, files)
        files = [file for file in files if not any(piece.hash in purged for piece in file.pieces)]
        changes = [change for change in look.changes if not (change.content and change.content.hash in purged)]
        await self._store_changes(work, changes, earlier)
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

    async def _purged(self, session: AgentSession, files: Iterable[SessionFile]) -> Collection[ContentHash]:
        names = {piece.hash for file in files for piece in file.pieces}
        async with self.database.connection() as connection:
            return await self.gate.purged(connection, session.caller(), session.project_id, names)

    def _found(self, work: Path, look: ScanResult) -> list[StateFile]:
        with FolderEditor(work, owner=self.workspaces.node.owner) as editor:
            late = editor.late_writes()
        with Folder(work) as folder:
            return state_files(folder, look.found, late, self.rules, self.limits)

    async def _earlier(self, session: AgentSession) -> dict[bytes, SessionFile]:
        async with self.database.connection() as connection:
            newest = await self.repository.newest(connection, session.id)
            files = [] if newest is None else await self.repository.files(connection, newest.id)
        return {file.name: file for file in files}

    async def _stored(self, work: Path, found: StateFile, earlier: SessionFile | None) -> SessionFile | None:
        """None: it is gone by now. `BlobCorrupted` when something of another kind has taken its place."""
        if found.kind is Kind.DIRECTORY:
            return SessionFile(name=found.name, kind=found.kind)
        try:
            if found.kind is Kind.SYMLINK:
                target = await in_thread(_link_target, work, found.name)
                return SessionFile(name=found.name, kind=found.kind, pieces=(await self._put(target),))
            descriptor = await in_thread(_open, work, found.name)
        except FileNotFoundError:
            return None
        except OSError as error:
            if error.errno not in _OF_ANOTHER_KIND:
                raise
            raise BlobCorrupted(f"{os.fsdecode(found.name)} was replaced while it was stored.") from error
        try:
            kept, start = await in_thread(_unchanged, descriptor, earlier, found)
            rest = await self.catalog.put(_pieces_of(descriptor, start, found.size))
            pieces: tuple[StoredPiece, ...] = (
                (*kept, StoredPiece(hash=rest.hash, size=rest.size)) if rest.size or not kept else kept
            )
        finally:
            os.close(descriptor)
        return SessionFile(name=found.name, kind=Kind.FILE, pieces=pieces, executable=found.executable)

    async def _store_changes(
        self, work: Path, changes: Sequence[PendingChange], earlier: Mapping[bytes, SessionFile]
    ) -> None:
        """All contents that the last snapshot does not have there. `BlobCorrupted` when a file is another by now."""
        small: list[PendingChange] = []
        for change in changes:
            content = change.content
            before = earlier.get(os.fsencode(change.path))
            if content is None or content.hash is None or (before and before.pieces == _pieces(content)):
                continue
            if content.size < self.catalog.limit:
                small.append(change)
            else:
                await self._put_large_change(work, change, content.hash)
        for batch in _batches(small, _content_size):
            contents, moved = await in_thread(read_contents, work, batch)
            if moved:
                raise BlobCorrupted(f"{min(moved)} was changed or taken away while it was stored.")
            await self.catalog.put_all(contents)

    async def _put_large_change(self, work: Path, change: PendingChange, expected: ContentHash) -> None:
        try:
            descriptor = await in_thread(open_content, change, work)
        except OSError as error:
            raise BlobCorrupted(f"{change.path} was taken away while it was stored.") from error
        try:
            await self.catalog.put(_pieces_of(descriptor, 0, None), expected=expected)
        finally:
            os.close(descriptor)

    async def _put(self, content: bytes) -> StoredPiece:
        stored = await self.catalog.put_bytes(content)
        return StoredPiece(hash=stored.hash, size=stored.size)

    async def _verify(self, files: Sequence[SessionFile]) -> None:
        """Nothing is stopped or removed because of a row alone: the bytes must be there."""
        pieces = {piece for file in files for piece in file.pieces}
        sizes = await self.catalog.sizes({piece.hash for piece in pieces})
        for piece in pieces:
            if sizes.get(piece.hash) != piece.size:
                raise BlobMissing(f"The content {piece.hash.hex()} of a session's file is not in the blob store.")


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
        if _hash_of(descriptor, offset, piece.size) != piece.hash:
            return (), 0
        offset += piece.size
    return earlier.pieces, offset


def _hash_of(descriptor: int, start: int, size: int) -> ContentHash:
    """Part by part: it may not fit into memory."""
    digest = hashlib.sha256()
    for offset in range(start, start + size, _PIECE):
        digest.update(os.pread(descriptor, min(_PIECE, start + size - offset), offset))
    return ContentHash(digest.digest())


def _uncommitted(change: PendingChange) -> Iterator[SessionFile]:
    """A rename is what is gone and what is there: its node is found again by content, if at all."""
    name, content = os.fsencode(change.path), change.content
    if change.renamed_from is not None:
        yield SessionFile(name=os.fsencode(change.renamed_from), kind=Kind.DELETED, base=change.base)
    if content is None:
        yield SessionFile(name=name, kind=Kind.DELETED, base=change.base)
        return
    yield SessionFile(
        name=name, kind=content.kind, pieces=_pieces(content), executable=content.executable, base=change.base
    )


def _pieces(content: FolderContent) -> tuple[StoredPiece, ...]:
    return () if content.hash is None else (StoredPiece(hash=content.hash, size=content.size),)


def _content_size(change: PendingChange) -> int:
    return 0 if change.content is None else change.content.size


def _batches(items: Iterable[Item], size_of: Callable[[Item], int]) -> Iterator[list[Item]]:
    """One that is larger than a batch may be comes alone."""
    batch: list[Item] = []
    size = 0
    for item in items:
        if batch and (len(batch) >= _BATCH_FILES or size + size_of(item) > _BATCH_BYTES):
            yield batch
            batch, size = [], 0
        batch.append(item)
        size += size_of(item)
    if batch:
        yield batch


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
