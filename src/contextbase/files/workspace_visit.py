"""One request in an open workspace's folder: what stands where, what is put there, and that it is noted."""

import asyncio
import os
import stat
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakValueDictionary

from contextbase.db.database import Database
from contextbase.errors import Conflict, NotFound, PreconditionFailed, TooLarge
from contextbase.files.file_tree import FolderNode
from contextbase.files.folder_file import KnownHashes
from contextbase.files.free_names import names_for
from contextbase.files.model import FileAction, FileDetails, FileEntry, OperationContext, moment
from contextbase.files.operation_log import NewOperation, OperationBatch, OperationLog
from contextbase.files.tree_index import TreeIndex
from contextbase.files.workspace_tree import leaf_of, whole_tree
from contextbase.gate.content_types import BYTES_LOOKED_AT, content_type
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.threads import WriteBehind, in_thread
from contextbase.workspaces.file_editor import FileEditor, StagedFile
from contextbase.workspaces.folder_scan import ScannedFolder
from contextbase.workspaces.model import Quota, View, WorkspaceId
from contextbase.workspaces.ports import FolderBackend
from contextbase.workspaces.repository import WorkspaceRecord
from contextbase.workspaces.service import WorkspaceService

__all__ = [
    "Standing",
    "WorkspaceFiles",
    "WorkspaceVisit",
    "check_expectation",
    "details_of",
    "mimes_of",
    "nothing_in_workspace",
]

_BATCH: Final = 1 << 20


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkspaceFiles:
    """What the places that are workspaces work with."""

    database: Database
    workspaces: WorkspaceService
    index: TreeIndex
    log: OperationLog
    quota: Quota
    largest_file: int
    hashes: KnownHashes = field(default_factory=KnownHashes)
    turns: "WeakValueDictionary[WorkspaceId, asyncio.Lock]" = field(default_factory=WeakValueDictionary)


@dataclass(frozen=True, kw_only=True, slots=True)
class Standing:
    """What is at a path."""

    status: os.stat_result
    hash: ContentHash | None = None  # None: a folder

    @property
    def kind(self) -> Kind:
        if stat.S_ISDIR(self.status.st_mode):
            return Kind.DIRECTORY
        return Kind.SYMLINK if stat.S_ISLNK(self.status.st_mode) else Kind.FILE

    @property
    def executable(self) -> bool:
        return self.kind is Kind.FILE and bool(self.status.st_mode & stat.S_IXUSR)


class WorkspaceVisit:
    """While `WorkspaceService.visited` keeps the folder in place."""

    def __init__(
        self,
        parts: WorkspaceFiles,
        caller: Caller,
        record: WorkspaceRecord,
        backend: FolderBackend,
        *,
        editor: FileEditor,
    ) -> None:
        self._parts = parts
        self._caller = caller
        self._backend = backend
        self.record = record
        self.editor = editor

    @property
    def shows_metadata(self) -> bool:
        return self.record.has_metadata

    async def given(self) -> FolderNode:
        """What the workspace was given."""
        return await self._parts.index.given(await self.view())

    async def view(self) -> View:
        return await self._backend.view_of(self.record.id)

    async def trees(self) -> tuple[FolderNode, FolderNode]:
        """What the workspace was given, and what it holds now."""
        scans = await self._backend.scan_folders(self.record.id)
        given = await self.given()
        return given, await in_thread(whole_tree, given, scans)

    async def scan(self, folder: TreePath | None) -> ScannedFolder:
        return await self._backend.scan_folder(self.record.id, folder or "")

    @asynccontextmanager
    async def turn(self) -> AsyncIterator[None]:
        """One request changes a workspace at a time: what one saw, no other changes under it."""
        async with self._parts.turns.setdefault(self.record.id, asyncio.Lock()):
            yield

    async def standing(self, path: TreePath) -> Standing | None:
        status = await in_thread(self.editor.look, path)
        if status is None:
            return None
        if stat.S_ISDIR(status.st_mode):
            return Standing(status=status)
        if leaf_of(status) is None:
            raise Conflict(f"{path} is a pipe, socket or device; only files and links can be used here.")
        if (known := self._parts.hashes.find(status)) is not None:
            return Standing(status=status, hash=known)
        found, seen = await in_thread(self.editor.hash_at, path)
        self._parts.hashes.keep(seen, found)
        return Standing(status=seen, hash=found)

    async def found(self, path: TreePath) -> Standing:
        """As `standing`; raises `NotFound`."""
        standing = await self.standing(path)
        if standing is None:
            raise nothing_in_workspace(path)
        return standing

    async def details(self, path: TreePath) -> FileDetails:
        standing = await self.found(path)
        mimes = await in_thread(mimes_of, self.editor, path.parent, [path.name])
        return details_of(path, standing, mimes.get(path.name, ""))

    @asynccontextmanager
    async def staged(self, path: TreePath, content: AsyncIterable[bytes]) -> AsyncIterator[StagedFile]:
        """All of the content, in a file that has no place yet: gone when the block ends, unless it got one."""
        staging = self.editor.staged(path)
        staged = await in_thread(staging.__enter__)
        try:
            await self._fill(staged, path, content)
            yield staged
        finally:
            await in_thread(staging.__exit__, None, None, None)

    async def _fill(self, staged: StagedFile, path: TreePath, content: AsyncIterable[bytes]) -> None:
        """Written in a thread and hashed in another, while more arrives."""
        waiting = bytearray()  # one buffer, so that many small pieces become one write
        size = 0
        async with WriteBehind() as hashing, WriteBehind() as writing:
            async for piece in content:
                size += len(piece)
                if size > self._parts.largest_file:
                    raise TooLarge(f"The file has more than {self._parts.largest_file} bytes, the most there may be.")
                waiting += piece
                if len(waiting) >= _BATCH:
                    await hashing.start(staged.hash_more, waiting)
                    await writing.start(self.editor.append, staged, path, waiting)
                    waiting = bytearray()
        await in_thread(self._append_last, staged, path, waiting)

    def _append_last(self, staged: StagedFile, path: TreePath, piece: bytearray) -> None:
        staged.hash_more(piece)
        self.editor.append(staged, path, piece)

    async def put_free(self, staged: StagedFile, folder: TreePath | None, name: str) -> TreePath:
        """Put it into the folder under the first name that is free."""
        return await in_thread(_put_free, self.editor, staged, folder, name)

    def wrote(self, staged: StagedFile) -> Standing:
        """What stands there when it took its place. Its hash is known from now on."""
        status = os.fstat(staged.descriptor)
        self._parts.hashes.keep_own(status, staged.hash)
        return Standing(status=status, hash=staged.hash)

    async def note(
        self,
        action: FileAction,
        path: TreePath,
        context: OperationContext,
        *,
        before: Standing | None = None,
        after: Standing | None = None,
        previous_path: TreePath | None = None,
    ) -> None:
        """In the history, the audit trail and the stream of the workspace."""
        principal, caller = self.record.principal, self._caller
        own = caller.working_as(principal) if principal.id == caller.principal.id else caller
        leaf = None if after is None else leaf_of(after.status)
        operation = NewOperation(
            action=action,
            path=path,
            previous_path=previous_path,
            kind=Kind.DELETED if after is None else after.kind,
            old_hash=None if before is None else before.hash,
            new_hash=None if after is None else after.hash,
            size=0 if leaf is None else leaf.size,
            executable=leaf is not None and leaf.executable,
            modified_ns=0 if leaf is None else leaf.modified_ns,
            stamp=0 if leaf is None else leaf.stamp,
            operator_type=own.way_in,
            principal_id=caller.principal.id,
        )
        batch = OperationBatch(
            project_id=self.record.project_id,
            workspace_id=self.record.id,
            paths=self.record.paths,
            operations=[operation],
            by=own,
            message_id=context.message_id,
        )
        await self._parts.log.record(batch)


def nothing_in_workspace(path: TreePath | None) -> NotFound:
    return NotFound(f"There is nothing at {path or 'the top'} in the workspace.")


def check_expectation(context: OperationContext, path: TreePath, before: Standing | None) -> None:
    """Raise `PreconditionFailed` if what stands there is not what was asked for."""
    found = None if before is None else before.hash
    if context.expects is None or context.expects.is_met_by(found, exists=before is not None):
        return
    told = "there is nothing there" if before is None else f"its ETag is {found}" if found else "it is a folder"
    raise PreconditionFailed(f"{path} is not what If-Match or If-None-Match asks for: {told}.")


def details_of(path: TreePath, standing: Standing, mime: str) -> FileDetails:
    is_folder = standing.kind is Kind.DIRECTORY
    entry = FileEntry(
        path=path,
        kind=standing.kind,
        size=0 if is_folder else standing.status.st_size,
        modified_at=moment(standing.status.st_mtime_ns),
        mime=mime,
    )
    return FileDetails(entry=entry, hash=standing.hash, executable=standing.executable)


def mimes_of(editor: FileEditor, folder: TreePath | None, names: list[str]) -> dict[str, str]:
    """Of those that are plain files still."""
    found = {}
    for name in names:
        path = TreePath.stored(f"{folder}/{name}" if folder else name)
        start = editor.start_of(path, BYTES_LOOKED_AT)
        if start is not None:
            found[name] = content_type(path, start)
    return found


def _put_free(editor: FileEditor, staged: StagedFile, folder: TreePath | None, name: str) -> TreePath:
    for candidate in names_for(name):
        path = TreePath(candidate) if folder is None else folder / candidate
        try:
            editor.put_new(staged, path)
        except FileExistsError:
            continue
        return path
    raise AssertionError("there is always one more name")
