"""A session's newest snapshot as a tar file: its own files, and its work that is not committed."""

import os
from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from contextbase.db.database import Database
from contextbase.errors import Forbidden, NotFound
from contextbase.history.archive_writers import ArchiveEntry, ArchiveFormat, writer_of
from contextbase.identity.model import Caller
from contextbase.ids import TreePath
from contextbase.sessions.access import SessionAccess
from contextbase.sessions.model import SessionId
from contextbase.sessions.snapshot_model import SessionFile, SessionSnapshot
from contextbase.sessions.snapshot_repository import SnapshotRepository
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind
from contextbase.threads import in_thread

__all__ = ["OpenedSnapshot", "SnapshotArchives"]

_MODES: Final = {Kind.FILE: 0o644, Kind.DIRECTORY: 0o755, Kind.SYMLINK: 0o777}
_LONG_AGO: Final = datetime(1980, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedSnapshot:
    snapshot: SessionSnapshot
    pieces: AsyncGenerator[bytes]  # of the archive; close it if you stop early


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotArchives:
    database: Database
    access: SessionAccess
    catalog: BlobCatalog
    repository: SnapshotRepository

    async def open(self, caller: Caller, session_id: SessionId) -> OpenedSnapshot:
        """Names are as the file system had them; what the work removed is left out. It works while the session's
        machine is gone. Raises `NotFound` for somebody else's session, and before anything was stored."""
        async with self.database.transaction() as connection:
            session = await self.access.opened(connection, caller, session_id)
            if await self.access.shares.level(connection, session.id, caller.principal.id) is not None:
                raise Forbidden("What a session keeps for itself is its owner's alone, also when it is shared.")
            snapshot = await self.repository.newest(connection, session_id)
            if snapshot is None:
                raise NotFound(f"Nothing is stored of the session {session_id} yet; that happens when a run ends.")
            files = await self.repository.files(connection, snapshot.id)
        return OpenedSnapshot(snapshot=snapshot, pieces=self._pieces(snapshot, files))

    async def _pieces(self, snapshot: SessionSnapshot, files: Sequence[SessionFile]) -> AsyncGenerator[bytes]:
        writer, at = writer_of(ArchiveFormat.TAR), snapshot.created_at or _LONG_AGO
        for file in files:
            if file.kind is Kind.DELETED:
                continue
            entry = ArchiveEntry(
                path=TreePath.stored(os.fsdecode(file.name)),
                kind=file.kind,
                content_hash=None,
                size=file.size,
                mode=_MODES[file.kind] | (0o111 if file.executable else 0),
                at=at,
            )
            if file.kind is not Kind.FILE:
                target = b"".join([await self.catalog.read(piece.hash) for piece in file.pieces])
                yield writer.begin(entry, target)
                continue
            yield writer.begin(entry, b"")
            for piece in file.pieces:
                async with aclosing(self.catalog.get(piece.hash)) as parts:
                    async for part in parts:
                        yield await in_thread(writer.add, part)
            yield writer.finish(entry)
        yield writer.end()
