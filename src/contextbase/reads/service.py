"""What a caller may see of a project's tree: snapshots, versions, what was set aside, and their contents.

Everything here is filtered by the caller's authority. What stood at a place long ago must be visible there and where
its node is now; what is not visible is told apart from what does not exist by nothing.
"""

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Final
from uuid import UUID

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.db.rows import RowShape
from contextbase.errors import ContentPurged, CursorOutdated, InvalidInput, NotFound
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.messages import readable_messages
from contextbase.gate.repository import GateRepository
from contextbase.gate.service import Gate, OpenedProject
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.reads.model import (
    Checkout,
    CommitAuthor,
    SideVersionEntry,
    SnapshotEntry,
    StoredContent,
    VersionEntry,
)
from contextbase.reads.path_reads import PathReads
from contextbase.reads.snapshot_view import VisibleSnapshot, part_of
from contextbase.reads.tree_cache import TreeCache
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind, Version
from contextbase.storage.tree import TreeRepository, version_of_row

__all__ = ["Reads", "nothing_at"]

MOST_INLINE_BYTES: Final = 8 * 1024 * 1024
_SQL: Final = load_queries("contextbase.gate")
_SIDE: Final = RowShape(SideVersionEntry, path=TreePath.stored, kind=Kind, content_hash=ContentHash)
_PAGE: Final = 1000
_ABOVE_EVERY_NUMBER: Final = 2**31 - 1


class Reads:
    def __init__(
        self,
        *,
        database: Database,
        gate: Gate,
        repository: GateRepository,
        tree: TreeRepository,
        catalog: BlobCatalog,
        contents: ContentCache,
    ) -> None:
        self._database = database
        self._gate = gate
        self._repository = repository
        self._tree = tree
        self._catalog = catalog
        self._contents = contents
        self._trees = TreeCache()
        self._paths = PathReads(database, gate)

    async def at_paths(
        self,
        caller: Caller,
        project_id: ProjectId,
        paths: Sequence[TreePath],
        *,
        seq: Seq | None,
        epoch: UUID | None = None,
        contents: bool,
    ) -> Checkout:
        """These paths in a snapshot (None: the head)."""
        caller.require(Action.READ, project_id)
        head, rows = await self._paths.at(caller, project_id, paths, seq=seq)
        view = _view_of(caller, project_id, head, seq, epoch)
        entries = [_entry(row) for row in rows if view.shows(row)]
        found = {entry.path for entry in entries}
        missing = tuple(path for path in dict.fromkeys(paths) if path not in found)
        entries = await self._with_contents(entries) if contents else entries
        return Checkout(epoch=view.epoch, seq=view.seq, entries=tuple(entries), missing=missing)

    async def below(
        self,
        caller: Caller,
        project_id: ProjectId,
        folder: TreePath | None,
        *,
        seq: Seq | None,
        epoch: UUID | None = None,
        contents: bool,
        after: str = "",
        limit: int = 1000,
    ) -> Checkout:
        """Everything below a folder (None: the whole tree) in a snapshot, in path order, after a path."""
        async with self._database.connection() as connection:
            view = await self.opened(connection, caller, project_id, seq, epoch)
            known = self._trees.find(view.key) if view.authority.sees_everything else None
            if known is not None:
                entries = part_of(known, folder, after, limit + 1)
            else:
                entries = await self._read_below(connection, view, folder, after, limit)
        page = await self._with_contents(entries[:limit]) if contents else entries[:limit]
        more = page[-1].path if len(entries) > limit else None
        return Checkout(epoch=view.epoch, seq=view.seq, entries=tuple(page), next_after=more)

    async def _read_below(
        self, connection: Connection, view: VisibleSnapshot, folder: TreePath | None, after: str, limit: int
    ) -> list[SnapshotEntry]:
        """The entries, one more than asked for if there are more. A whole tree is remembered: it never changes."""
        entries: list[SnapshotEntry] = []
        async for rows in self._visible_below(connection, view, folder, after, page=max(_PAGE, limit + 1)):
            entries += map(_entry, rows)
            if len(entries) > limit:
                return entries
        if view.authority.sees_everything and folder is None and not after:
            self._trees.keep(view.key, entries)
        return entries

    async def folder(
        self,
        caller: Caller,
        project_id: ProjectId,
        folder: TreePath | None,
        *,
        seq: Seq | None,
        epoch: UUID | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> Checkout:
        """One folder's entries, not what lies deeper; a folder is there if anything visible is in it."""
        async with self._database.connection() as connection:
            view = await self.opened(connection, caller, project_id, seq, epoch)
            found: list[tuple[SnapshotEntry, str]] = []
            async for entry, cursor in self._visible_children(connection, view, folder, after):
                found.append((entry, cursor))
                if len(found) > limit:
                    break
        more = found[limit - 1][1] if len(found) > limit else None
        return Checkout(
            epoch=view.epoch, seq=view.seq, entries=tuple(entry for entry, _ in found[:limit]), next_after=more
        )

    async def versions(
        self, caller: Caller, project_id: ProjectId, path: TreePath, *, before: int | None = None, limit: int = 100
    ) -> tuple[list[VersionEntry], int | None]:
        """The versions of the node at a path (or that was there last), newest first, and where the next page starts."""
        async with self._database.connection() as connection:
            view = await self.opened(connection, caller, project_id, None)
            node_id = await self.node_of(connection, project_id, path, view.authority)
            entries: list[VersionEntry] = []
            number = before or _ABOVE_EVERY_NUMBER
            while len(entries) <= limit:
                rows = await connection.fetch(_SQL.version_page, project_id, node_id, number, _PAGE)
                entries += [
                    VersionEntry(version=version_of_row(row), author=CommitAuthor.of_row(row))
                    for row in rows
                    if view.shows(row)
                ]
                if len(rows) < _PAGE:
                    break
                number = rows[-1]["number"]
            if not entries and before is None:
                raise nothing_at(path)
            page = entries[:limit]
            seqs = (entry.version.seq for entry in page)
            readable = await readable_messages(connection, project_id, seqs, view.authority)
        told = [replace(entry, author=entry.author.told(message=entry.version.seq in readable)) for entry in page]
        return told, page[-1].version.number if len(entries) > limit else None

    async def side_versions(
        self, caller: Caller, project_id: ProjectId, path: TreePath, *, before: UUID | None = None, limit: int = 100
    ) -> tuple[list[SideVersionEntry], UUID | None]:
        """What was set aside at a path, or of the node there, newest first, and where the next page starts."""
        async with self._database.connection() as connection:
            view = await self.opened(connection, caller, project_id, None)
            if not view.authority.sees(path):
                raise nothing_at(path)
            node_id = await self._last_visible_node(connection, project_id, path, view.authority)
            entries: list[SideVersionEntry] = []
            while len(entries) <= limit:
                rows = await connection.fetch(_SQL.side_page, project_id, path, node_id, before, _PAGE)
                entries += [_side(row) for row in rows if view.shows(row)]
                if len(rows) < _PAGE:
                    break
                before = rows[-1]["id"]
            page = entries[:limit]
            readable = await readable_messages(connection, project_id, (entry.seq for entry in page), view.authority)
        told = [replace(entry, author=entry.author.told(message=entry.seq in readable)) for entry in page]
        return told, page[-1].id if len(entries) > limit else None

    async def content_at(
        self, caller: Caller, project_id: ProjectId, path: TreePath, *, seq: Seq | None
    ) -> StoredContent:
        """The content at a path in a snapshot (None: the head)."""
        found = await self.at_paths(caller, project_id, [path], seq=seq, contents=False)
        if not found.entries or found.entries[0].version is None:
            raise nothing_at(path)
        return _stored(found.entries[0].version)

    async def content_of_version(
        self, caller: Caller, project_id: ProjectId, node_id: NodeId, number: int
    ) -> StoredContent:
        async with self._database.connection() as connection:
            view = await self.opened(connection, caller, project_id, None)
            row = await connection.fetchrow(_SQL.version_page, project_id, node_id, number + 1, 1)
        if row is None or row["number"] != number or not view.shows(row):
            raise NotFound(f"There is no version {number} of {node_id} that you may read.")
        return _stored(version_of_row(row))

    async def content_of_side_version(self, caller: Caller, project_id: ProjectId, side_id: UUID) -> StoredContent:
        async with self._database.connection() as connection:
            view = await self.opened(connection, caller, project_id, None)
            row = await connection.fetchrow(_SQL.side_version, project_id, side_id)
        if row is None or not view.shows(row):
            raise NotFound(f"There is no side version {side_id} that you may read.")
        if row["content_hash"] is None:
            raise InvalidInput(f"The side version {side_id} is a {row['kind']}: it has no content.")
        return StoredContent(
            path=TreePath.stored(row["path"]), hash=ContentHash(row["content_hash"]), size=row["size"], mime=row["mime"]
        )

    def stream(self, content: StoredContent, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """Its bytes from `start` up to (not including) `end`; close it if you stop early."""
        return self._catalog.get(content.hash, start=start, end=end)

    async def node_of(
        self, connection: Connection, project_id: ProjectId, path: TreePath, authority: PathAuthority
    ) -> NodeId:
        """The node at a path, or the last one there that the caller may see; raises `NotFound` when there is none."""
        node_id = await self._last_visible_node(connection, project_id, path, authority)
        if node_id is None:
            raise nothing_at(path)
        return node_id

    async def _last_visible_node(
        self, connection: Connection, project_id: ProjectId, path: TreePath, authority: PathAuthority
    ) -> NodeId | None:
        """A file that was moved to where the caller may not see it leaves no trace: the one before it counts."""
        if authority.sees_everything:
            found = await connection.fetchval(_SQL.node_of_path, project_id, path)
            return None if found is None else NodeId(found)
        if not authority.sees(path):
            return None
        offset = 0
        while True:
            rows = await connection.fetch(_SQL.nodes_of_path, project_id, path, _PAGE, offset)
            for row in rows:
                if authority.shows(path, TreePath.stored(row["path_now"])):
                    return NodeId(row["node_id"])
            if len(rows) < _PAGE:
                return None
            offset += _PAGE

    async def opened(
        self,
        connection: Connection,
        caller: Caller,
        project_id: ProjectId,
        seq: Seq | None,
        epoch: UUID | None = None,
    ) -> VisibleSnapshot:
        """A snapshot (None: the head) as the caller may see it; raises `NotFound`, `InvalidInput`, `CursorOutdated`."""
        caller.require(Action.READ, project_id)
        return _view_of(caller, project_id, await self._gate.opened(connection, caller, project_id), seq, epoch)

    async def _visible_below(
        self, connection: Connection, view: VisibleSnapshot, folder: TreePath | None, after: str = "", page: int = _PAGE
    ) -> AsyncIterator[list[asyncpg.Record]]:
        """What is below a folder, page by page."""
        bounds = view.range_below(folder)
        if bounds is None:
            return
        first, end = bounds
        while True:
            rows = await connection.fetch(_SQL.snapshot_page, view.project_id, first, end, after, view.seq, page)
            yield rows if view.authority.sees_everything else await view.shown(connection, rows)
            if len(rows) < page:
                return
            after = rows[-1]["path"]
            first = max(first, view.behind(TreePath.stored(after)))

    async def _visible_children(
        self, connection: Connection, view: VisibleSnapshot, folder: TreePath | None, after: str
    ) -> AsyncIterator[tuple[SnapshotEntry, str]]:
        """Entries, each with the cursor that goes on after it. Cursors name visible entries only."""
        start = _bound(after) if after else None
        if view.range_below(folder) is None:
            return
        while True:
            page = await self._tree.children(
                connection, view.project_id, view.seq, folder=folder, start=start, limit=_PAGE
            )
            paths = [TreePath(f"{folder}/{child.name}" if folder else child.name) for child in page.children]
            rows = await connection.fetch(_SQL.snapshot_paths, view.project_id, paths, [view.seq] * len(paths))
            visible = {row["path"] for row in rows if row["path"] is not None and view.shows(row)}
            for path, child in zip(paths, page.children, strict=True):
                # A folder that its contents imply stands, in path order, where they do: at "path/".
                cursor = path if child.version is not None else f"{path}/"
                if child.version is not None and path in visible:
                    yield SnapshotEntry(path=path, kind=child.kind, version=child.version), cursor
                elif child.kind is Kind.DIRECTORY and await self._holds_visible(connection, view, path):
                    yield SnapshotEntry(path=path, kind=Kind.DIRECTORY, version=None), cursor
            if page.next_from is None:
                return
            start = page.next_from

    async def _holds_visible(self, connection: Connection, view: VisibleSnapshot, folder: TreePath) -> bool:
        async for rows in self._visible_below(connection, view, folder):
            if rows:
                return True
        return False

    async def _with_contents(self, entries: list[SnapshotEntry]) -> list[SnapshotEntry]:
        """The contents of the first entries, as long as they are not too much for one answer; not what was purged."""
        room = MOST_INLINE_BYTES
        wanted: dict[TreePath, ContentHash] = {}
        for entry in entries:
            version = entry.version
            if version is not None and version.content_hash is not None and version.size <= room:
                room -= version.size
                wanted[entry.path] = version.content_hash
        loaded = self._contents.find(set(wanted.values()))
        missing = [name for name in set(wanted.values()) if name not in loaded]
        if missing:
            async with self._database.connection() as connection:
                loaded |= await self._repository.inline_contents(connection, missing)
        for name in missing:
            if name not in loaded:
                with suppress(ContentPurged):  # the others are there
                    loaded[name] = await self._catalog.read(name)
        contents = {path: loaded[name] for path, name in wanted.items() if name in loaded}
        return [replace(entry, content=contents.get(entry.path)) for entry in entries]


def _view_of(
    caller: Caller, project_id: ProjectId, head: OpenedProject, seq: Seq | None, epoch: UUID | None
) -> VisibleSnapshot:
    """A snapshot (None: the head) as the caller may see it; raises when there is, or can be, no such snapshot."""
    if epoch not in (None, head.epoch):
        raise CursorOutdated("The project was restored since; check it out again.")
    if seq is not None and seq > head.seq:
        raise InvalidInput(f"The seq {seq} is after the project's head {head.seq}.")
    return VisibleSnapshot(
        project_id=project_id,
        epoch=head.epoch,
        seq=head.seq if seq is None else seq,
        policy_version=head.policy.version,
        authority=head.authority,
        only=caller.grant.path_prefix,
    )


def _entry(row: asyncpg.Record) -> SnapshotEntry:
    version = version_of_row(row)
    return SnapshotEntry(path=version.path, kind=version.kind, version=version)


def _side(row: asyncpg.Record) -> SideVersionEntry:
    return _SIDE(row, author=CommitAuthor.of_row(row))


def _stored(version: Version) -> StoredContent:
    if version.content_hash is None:
        raise InvalidInput(f"{version.path} is a {version.kind}: it has no content.")
    return StoredContent(path=version.path, hash=version.content_hash, size=version.size, mime=version.mime)


def _bound(cursor: str) -> str:
    """Just after what a cursor names, in path order."""
    return f"{cursor[:-1]}0" if cursor.endswith("/") else f"{cursor}\x01"


def nothing_at(path: TreePath) -> NotFound:
    """What is said of a path where there is nothing, or nothing for the caller."""
    return NotFound(f"There is nothing at {path} that you may read.")
