"""A snapshot, or a part of one, as a tar or zip file that is made while it is sent."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from dataclasses import dataclass, replace
from typing import Final

import asyncpg

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import Damaged
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate
from contextbase.history.archive_writers import ArchiveEntry, ArchiveFormat, ArchiveWriter, writer_of
from contextbase.history.snapshots import Snapshots
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.reads.service import nothing_at
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind
from contextbase.storage.tree import path_range

__all__ = ["Archive", "Archives"]

_SQL: Final = load_queries("contextbase.history")
_PAGE: Final = 500
_MODES: Final = {Kind.FILE: 0o644, Kind.DIRECTORY: 0o755, Kind.SYMLINK: 0o777}
_LONGEST_LINK: Final = 64 << 10
_SHORT: Final = 64 << 10
_SHORT_IN_ALL: Final = 4 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class Archive:
    seq: Seq
    pieces: AsyncGenerator[bytes, None]  # close it if you stop early


@dataclass(frozen=True, kw_only=True, slots=True)
class Archives:
    database: Database
    gate: Gate
    repository: GateRepository
    snapshots: Snapshots
    catalog: BlobCatalog

    async def open(
        self, caller: Caller, project_id: ProjectId, *, ref: str = "", path: TreePath | None, form: ArchiveFormat
    ) -> Archive:
        """What the caller may see of a file, of a folder and all in it, or of the whole tree, in a snapshot. Names are
        the paths in the project; no name is absolute, has `..`, or lies below a link. Raises `NotFound` if there is
        nothing at the path; what was purged is left out."""
        caller.require(Action.READ, project_id)
        async with self.database.connection() as connection:
            opened = await self.gate.opened(connection, caller, project_id)
            seq = await self.snapshots.within(connection, project_id, opened.seq, ref)
        entries = self._entries(opened.authority, project_id, seq, path)
        first = await anext(entries, None)
        if first is None and path is not None:
            await entries.aclose()
            raise nothing_at(path)
        return Archive(seq=seq, pieces=self._pieces(first, entries, form))

    async def _entries(
        self, authority: PathAuthority, project_id: ProjectId, seq: Seq, path: TreePath | None
    ) -> AsyncGenerator[ArchiveEntry, None]:
        """Holds no connection while the reader is slow."""
        bounds, after = path_range(path), ""
        while True:
            async with self.database.connection() as connection:
                rows = await connection.fetch(_SQL.archived_page, project_id, path or "", *bounds, seq, after, _PAGE)
                page = [
                    _entry(row)
                    for row in rows
                    if authority.shows(TreePath.stored(row["path"]), TreePath.stored(row["path_now"]))
                ]
                short = await self.repository.inline_contents(connection, _short(page))
            for entry in page:
                content = short.get(entry.content_hash) if entry.content_hash is not None else None
                yield entry if content is None else replace(entry, content=content)
            if len(rows) < _PAGE:
                return
            after = rows[-1]["path"]

    async def _pieces(
        self, first: ArchiveEntry | None, entries: AsyncGenerator[ArchiveEntry, None], form: ArchiveFormat
    ) -> AsyncGenerator[bytes, None]:
        writer = writer_of(form)
        async with aclosing(entries):
            if first is not None:
                async for piece in self._written(writer, first):
                    yield piece
            async for entry in entries:
                async for piece in self._written(writer, entry):
                    yield piece
        yield writer.end()

    async def _written(self, writer: ArchiveWriter, entry: ArchiveEntry) -> AsyncIterator[bytes]:
        if entry.content_hash is None:
            yield writer.begin(entry, b"")
            return
        if entry.kind is Kind.SYMLINK:
            if entry.size > _LONGEST_LINK:
                raise Damaged(f"The link {entry.path} has a target of {entry.size} bytes.")
            yield writer.begin(entry, entry.content or await self.catalog.read(entry.content_hash))
            return
        if entry.content is not None:
            yield writer.begin(entry, b"") + writer.add(entry.content) + writer.finish(entry)
            return
        yield writer.begin(entry, b"")
        async with aclosing(self.catalog.get(entry.content_hash)) as pieces:
            async for piece in pieces:
                yield await asyncio.to_thread(writer.add, piece)
        yield writer.finish(entry)


def _entry(row: asyncpg.Record) -> ArchiveEntry:
    kind = Kind(row["kind"])
    return ArchiveEntry(
        path=TreePath.stored(row["path"]),
        kind=kind,
        content_hash=None if row["content_hash"] is None else ContentHash(row["content_hash"]),
        size=row["size"],
        mode=0o755 if row["executable"] else _MODES[kind],
        at=row["committed_at"],
    )


def _short(page: list[ArchiveEntry]) -> list[ContentHash]:
    """The contents that are read at once, with the page: short ones, and not too many."""
    room = _SHORT_IN_ALL
    names = []
    for entry in page:
        if entry.content_hash is not None and entry.size <= min(_SHORT, room):
            room -= entry.size
            names.append(entry.content_hash)
    return names
