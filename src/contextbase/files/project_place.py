"""A project as a place for files: read at the head or in any snapshot, changed through the gate."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Hashable
from contextlib import aclosing, asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Final
from weakref import WeakValueDictionary

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, InvalidInput, PreconditionFailed, error_of_code
from contextbase.files.file_tree import FolderNode
from contextbase.files.free_names import names_for
from contextbase.files.model import (
    FileAction,
    FileDetails,
    FileEntry,
    HistoryPage,
    OperationContext,
    OperationResult,
    OperationStatus,
    PlaceSyncResult,
    PlaceUsage,
    moment,
)
from contextbase.files.ports import OpenedFile
from contextbase.files.project_history import project_history
from contextbase.files.tree_index import TreeIndex
from contextbase.gate.model import (
    ChangeAction,
    ChangeStatus,
    CommitAnswer,
    CommitRequest,
    Content,
    Expectation,
    RequestedChange,
)
from contextbase.gate.service import Gate, OpenedProject
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.history.archives import Archives
from contextbase.identity.model import Action, Caller
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.reads.model import StoredContent
from contextbase.reads.service import Reads, nothing_at
from contextbase.storage.model import Kind, Version

__all__ = ["ProjectFiles", "ProjectPlace"]

_SQL: Final = load_queries("contextbase.files")
_STATUSES: Final = {
    ChangeStatus.WRITTEN: OperationStatus.WRITTEN,
    ChangeStatus.UNCHANGED: OperationStatus.UNCHANGED,
    ChangeStatus.MERGED: OperationStatus.MERGED,
    ChangeStatus.SUPERSEDED: OperationStatus.SUPERSEDED,
    ChangeStatus.IN_REVIEW: OperationStatus.IN_REVIEW,
}
_INLINE_BYTES: Final = 64 * 1024


@dataclass(frozen=True, kw_only=True, slots=True)
class ProjectFiles:
    """What a `ProjectPlace` works with."""

    database: Database
    gate: Gate
    reads: Reads
    archives: Archives
    index: TreeIndex
    turns: "WeakValueDictionary[tuple[ProjectId, TreePath | None], asyncio.Lock]" = field(
        default_factory=WeakValueDictionary
    )


class ProjectPlace:
    reference = "project"

    def __init__(self, parts: ProjectFiles, caller: Caller, project_id: ProjectId, seq: Seq | None = None) -> None:
        """`seq`: the snapshot; None: the head, whichever it is at each call."""
        self._parts = parts
        self._caller = caller
        self._project_id = project_id
        self._seq = seq

    async def tree(self) -> FolderNode:
        opened = await self._opened()
        return await self._parts.index.shown(self._project_id, opened, self._seq_in(opened))

    async def folder(self, path: TreePath | None) -> FolderNode:
        found = (await self.tree()).folder(path or "")
        if found is None:
            raise nothing_at(path or TreePath.stored("/"))
        return found

    async def mimes(self, folder: TreePath | None, names: list[str]) -> dict[str, str]:  # noqa: ARG002 - all are known
        return {}

    async def details(self, path: TreePath) -> FileDetails:
        entry = await self._entry(path)
        if entry is None:
            raise nothing_at(path)
        return entry

    @asynccontextmanager
    async def opened(self, path: TreePath) -> AsyncIterator[OpenedFile]:
        details = await self.details(path)
        if details.hash is None:
            raise InvalidInput(f"{path} is a folder: it has no content.")
        stored = StoredContent(path=path, hash=details.hash, size=details.entry.size, mime=details.entry.mime)
        yield OpenedFile(details=details, content=_BlobContent(self._parts.reads, stored))

    @asynccontextmanager
    async def archive(self, path: TreePath | None, form: ArchiveFormat) -> AsyncIterator[AsyncGenerator[bytes]]:
        ref = "" if self._seq is None else str(self._seq)
        made = await self._parts.archives.open(self._caller, self._project_id, ref=ref, path=path, form=form)
        async with aclosing(made.pieces):
            yield made.pieces

    async def write(
        self, path: TreePath, content: AsyncIterable[bytes], context: OperationContext, *, mime: str = ""
    ) -> OperationResult:
        brought = await self._taken(content)
        opened, tree = await self._tree_to_change()
        if tree.folder(path) is not None:
            raise Conflict(f"{path} is a folder.")
        _check_room(tree, path)
        return await self._write(opened.seq, path, brought, context, mime)

    async def add(
        self, folder: TreePath | None, name: str, content: AsyncIterable[bytes], context: OperationContext
    ) -> OperationResult:
        """One after the other here; among several servers the gate settles who gets a name."""
        brought = await self._taken(content)
        is_free = OperationContext(message_id=context.message_id, expects=Expectation(is_none=True))
        async with self._parts.turns.setdefault((self._project_id, folder), asyncio.Lock()):
            while True:
                opened, tree = await self._tree_to_change()
                _check_room(tree, _below(folder, name))
                found = tree.folder(folder or "")
                taken = set() if found is None else {*found.files, *found.folders}
                path = _below(folder, next(candidate for candidate in names_for(name) if candidate not in taken))
                with suppress(PreconditionFailed):  # another server was quicker
                    return await self._write(opened.seq, path, brought, is_free, "")

    async def delete(self, path: TreePath, context: OperationContext, *, recursive: bool = False) -> OperationResult:
        opened, tree = await self._tree_to_change()
        folder = tree.folder(path)
        if folder is None and tree.leaf(path) is None:
            raise nothing_at(path)
        if folder is not None and (folder.files or folder.folders) and not recursive:
            raise Conflict(f"The folder {path} is not empty. Say that all in it may go as well.")
        change = RequestedChange(action=ChangeAction.DELETE, path=path, base=opened.seq)
        return await self._committed(FileAction.DELETE, change, context)

    async def rename(self, path: TreePath, target: TreePath, context: OperationContext) -> OperationResult:
        opened, tree = await self._tree_to_change()
        if tree.leaf(target) or tree.folder(target):
            raise Conflict(f"There is something at {target} already. Delete it first, or choose another name.")
        _check_room(tree, target)
        change = RequestedChange(action=ChangeAction.RENAME, path=path, target=target, base=opened.seq)
        return await self._committed(FileAction.RENAME, change, context)

    async def make_folder(self, path: TreePath, context: OperationContext) -> OperationResult:
        opened, tree = await self._tree_to_change()
        _check_room(tree, path)
        if tree.leaf(path):
            raise Conflict(f"There is a file at {path} already.")
        change = RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=path, base=opened.seq)
        return await self._committed(FileAction.MAKE_FOLDER, change, context)

    async def history(self, path: TreePath | None, *, before: str | None, limit: int) -> HistoryPage:
        self._caller.require(Action.READ, self._project_id)
        async with self._parts.database.connection() as connection:
            opened = await self._parts.gate.opened(connection, self._caller, self._project_id)
            node_id = None
            if path is not None:
                node_id = await self._parts.reads.node_of(connection, self._project_id, path, opened.authority)
            return await project_history(
                connection,
                self._project_id,
                opened.authority,
                node_id=node_id,
                before=before,
                limit=limit,
                tells_origins=self._caller.administers(self._project_id),
            )

    async def sync(self, context: OperationContext) -> PlaceSyncResult:  # noqa: ARG002 - nothing gets past the gate
        self._require_to_change()
        return PlaceSyncResult(at=await self.last_sync(), registered=())

    async def last_sync(self) -> datetime | None:
        """Everything up to the last commit is registered: the gate did it."""
        async with self._parts.database.connection() as connection:
            found: datetime | None = await connection.fetchval(_SQL.head_committed_at, self._project_id)
        return found

    async def usage(self) -> PlaceUsage:
        return PlaceUsage(disk_usage=(await self.tree()).sums.bytes)

    async def _opened(self) -> OpenedProject:
        self._caller.require(Action.READ, self._project_id)
        async with self._parts.database.connection() as connection:
            return await self._parts.gate.opened(connection, self._caller, self._project_id)

    async def _tree_to_change(self) -> tuple[OpenedProject, FolderNode]:
        """The head, and all of it that the caller may see."""
        self._require_to_change()
        opened = await self._opened()
        return opened, await self._parts.index.shown(self._project_id, opened, opened.seq)

    def _require_to_change(self) -> None:
        if self._seq is not None:
            raise InvalidInput("A snapshot cannot be changed. Write to the head: leave `at` out.")
        self._caller.require(Action.WRITE, self._project_id)

    def _seq_in(self, opened: OpenedProject) -> Seq:
        if self._seq is None:
            return opened.seq
        if self._seq > opened.seq:
            raise InvalidInput(f"The seq {self._seq} is after the project's head {opened.seq}.")
        return self._seq

    async def _entry(self, path: TreePath) -> FileDetails | None:
        found = await self._parts.reads.at_paths(self._caller, self._project_id, [path], seq=self._seq, contents=False)
        version = found.entries[0].version if found.entries else None
        if version is not None and version.kind is not Kind.DIRECTORY:
            async with self._parts.database.connection() as connection:
                at = await connection.fetchval(_SQL.committed_at, self._project_id, version.seq)
            return _details(version, at)
        folder = (await self.tree()).folder(path)
        if folder is None:
            return None
        entry = FileEntry(path=path, kind=Kind.DIRECTORY, size=0, modified_at=moment(folder.sums.newest_ns), mime="")
        return FileDetails(entry=entry, hash=None)

    async def _taken(self, content: AsyncIterable[bytes]) -> Content:
        """What is short goes along with the commit; the rest is stored first."""
        self._require_to_change()
        pieces = aiter(content)
        start = bytearray()
        async for piece in pieces:
            start += piece
            if len(start) > _INLINE_BYTES:
                blob = await self._parts.gate.upload(self._caller, self._project_id, _joined(bytes(start), pieces))
                return Content(hash=blob.hash, size=blob.size)
        inline = bytes(start)
        return Content(hash=ContentHash.of(inline), size=len(inline), inline=inline)

    async def _write(
        self, base: Seq, path: TreePath, content: Content, context: OperationContext, mime: str
    ) -> OperationResult:
        change = RequestedChange(action=ChangeAction.WRITE, path=path, base=base, content=content, mime=mime)
        return await self._committed(FileAction.WRITE, change, context)

    async def _committed(
        self, action: FileAction, change: RequestedChange, context: OperationContext
    ) -> OperationResult:
        request = CommitRequest(
            project_id=self._project_id,
            changes=(change,),
            atomic=action in (FileAction.DELETE, FileAction.RENAME),  # of a folder: all of it, or nothing
            expects=context.expects,
            message_id=context.message_id,
        )
        answer = await self._parts.gate.commit(self._caller, request)
        for one in answer.changes:
            if one.status is ChangeStatus.REFUSED:
                raise error_of_code(one.code or "forbidden", one.reason or "The change was refused.")
        return await self._result(action, change, answer)

    async def _result(self, action: FileAction, change: RequestedChange, answer: CommitAnswer) -> OperationResult:
        first = answer.changes[0]
        made = None
        if len(answer.changes) == 1 and first.node_id is not None and first.number is not None:
            async with self._parts.database.connection() as connection:
                made = await connection.fetchrow(_SQL.version_made, self._project_id, first.node_id, first.number)
        result = OperationResult(
            action=action,
            path=change.target or change.path,
            status=_STATUSES[first.status],
            previous_path=change.path if change.target is not None else None,
            seq=answer.seq,
            review_id=first.review_id,
        )
        if made is None:
            return result
        new, old = made["content_hash"], made["hash_before"]
        return replace(
            result,
            new_hash=None if new is None else ContentHash(new),
            old_hash=None if old is None else ContentHash(old),
            size=made["size"],
            mime=made["mime"],
        )


class _BlobContent:
    """Bytes of a version, by their hash."""

    descriptor = None

    def __init__(self, reads: Reads, stored: StoredContent) -> None:
        self._reads = reads
        self._stored = stored

    @property
    def size(self) -> int:
        return self._stored.size

    @property
    def identity(self) -> Hashable:
        return self._stored.hash

    def stream(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        is_whole = (start, end) == (0, self._stored.size)
        return self._reads.stream(self._stored, start=start, end=None if is_whole else end)


def _details(version: Version, at: datetime) -> FileDetails:
    entry = FileEntry(path=version.path, kind=version.kind, size=version.size, modified_at=at, mime=version.mime)
    return FileDetails(
        entry=entry,
        hash=version.content_hash,
        executable=version.executable,
        seq=version.seq,
        version=version.number,
    )


def _check_room(tree: FolderNode, path: TreePath) -> None:
    """Raise `Conflict` if the path leads through a file."""
    for folder in path.folders:
        if tree.leaf(folder) is not None:
            raise Conflict(f"A part of the path {path} is a file, not a folder: {folder}.")


def _below(folder: TreePath | None, name: str) -> TreePath:
    return TreePath(name) if folder is None else folder / name


async def _joined(start: bytes, rest: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield start
    async for piece in rest:
        yield piece
