"""An open workspace as a place for files: what is written goes into its folder, uncommitted, on the machine that has
it."""

import os
import stat
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from datetime import datetime
from typing import Final

from contextbase.errors import Conflict, InvalidInput, NotFound
from contextbase.files.file_tree import FileLeaf, FolderNode, differences
from contextbase.files.folder_file import FolderFile, HeldContent
from contextbase.files.model import (
    FileAction,
    FileDetails,
    HistoryPage,
    OperationContext,
    OperationResult,
    OperationStatus,
    PlaceSyncResult,
    PlaceUsage,
)
from contextbase.files.ports import OpenedFile
from contextbase.files.workspace_archive import archived
from contextbase.files.workspace_metadata import WorkspaceMetadata, is_metadata, refuse_metadata, with_metadata
from contextbase.files.workspace_sync import synced
from contextbase.files.workspace_tree import one_folder
from contextbase.files.workspace_visit import (
    Standing,
    WorkspaceFiles,
    WorkspaceVisit,
    check_expectation,
    details_of,
    mimes_of,
    nothing_in_workspace,
)
from contextbase.gate.content_types import BYTES_LOOKED_AT, content_type
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.identity.model import Action, Caller
from contextbase.ids import TreePath
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.file_editor import FileEditor
from contextbase.workspaces.model import NamedWorkspace, WorkspaceId

__all__ = ["WorkspacePlace"]

_MOST_TRIES: Final = 5


class WorkspacePlace:
    reference = "workspace"

    def __init__(self, parts: WorkspaceFiles, caller: Caller, named: NamedWorkspace) -> None:
        self._parts = parts
        self._caller = caller
        self._named = named

    async def tree(self) -> FolderNode:
        async with self._visit() as visit:
            _, tree = await visit.trees()
            return tree

    async def folder(self, path: TreePath | None) -> FolderNode:
        async with self._visit() as visit:
            if path is not None and visit.shows_metadata and is_metadata(path):
                found = await WorkspaceMetadata(self._parts, visit).folder(path)
            else:
                found = one_folder(await visit.given(), await visit.scan(path))
                if path is None and found is not None and visit.shows_metadata:
                    found = with_metadata(found)
        if found is None:
            raise nothing_in_workspace(path)
        return found

    async def mimes(self, folder: TreePath | None, names: list[str]) -> dict[str, str]:
        async with self._visit() as visit:
            return await in_thread(mimes_of, visit.editor, folder, names)

    async def details(self, path: TreePath) -> FileDetails:
        async with self._visit() as visit:
            if visit.shows_metadata and is_metadata(path):
                return (await WorkspaceMetadata(self._parts, visit).document(path)).details
            return await visit.details(path)

    @asynccontextmanager
    async def opened(self, path: TreePath) -> AsyncIterator[OpenedFile]:
        async with self._visit() as visit, AsyncExitStack() as stack:
            if visit.shows_metadata and is_metadata(path):
                made = await WorkspaceMetadata(self._parts, visit).document(path)
                if made.content is None:
                    raise _without_content(path)
                yield OpenedFile(details=made.details, content=HeldContent(made.content))
                return
            standing = await visit.found(path)
            if standing.kind is Kind.DIRECTORY:
                raise _without_content(path)
            if standing.kind is Kind.SYMLINK:
                target = await in_thread(visit.editor.link_target, path)
                yield OpenedFile(details=details_of(path, standing, ""), content=HeldContent(target))
                return
            descriptor = await in_thread(visit.editor.open_file, path)
            stack.callback(os.close, descriptor)
            start = await in_thread(os.pread, descriptor, BYTES_LOOKED_AT, 0)
            details = details_of(path, standing, content_type(path, start))
            yield OpenedFile(details=details, content=FolderFile(descriptor))

    @asynccontextmanager
    async def archive(self, path: TreePath | None, form: ArchiveFormat) -> AsyncIterator[AsyncGenerator[bytes]]:
        async with self._visit() as visit:
            if path is not None:
                await visit.found(path)
            _, tree = await visit.trees()
            async with archived(visit.editor, tree, path, form) as pieces:
                yield pieces

    async def write(
        self,
        path: TreePath,
        content: AsyncIterable[bytes],
        context: OperationContext,
        *,
        mime: str = "",
    ) -> OperationResult:
        """A folder has no room for a type: whoever asks for it finds it from name and content."""
        del mime
        async with self._visit(Action.WRITE, path) as visit, visit.staged(path, content) as staged:
            for _ in range(_MOST_TRIES):
                async with visit.turn():
                    before = await visit.standing(path)
                    check_expectation(context, path, before)
                    if before is not None and before.kind is Kind.DIRECTORY:
                        raise Conflict(f"{path} is a folder.")
                    if before is not None and before.kind is Kind.FILE and before.hash == staged.hash:
                        status = OperationStatus.UNCHANGED
                        return _result(FileAction.WRITE, path, before=before, after=before, status=status)
                    executable, seen = (False, None) if before is None else (before.executable, before.status)
                    await in_thread(visit.editor.finish, staged, path, executable=executable)
                    if await in_thread(visit.editor.put_over, staged, path, seen):
                        after = visit.wrote(staged)
                        await visit.note(FileAction.WRITE, path, context, before=before, after=after)
                        return _result(FileAction.WRITE, path, before=before, after=after)
        raise Conflict(f"A program keeps writing to {path}. Try again when it is done.")

    async def add(
        self, folder: TreePath | None, name: str, content: AsyncIterable[bytes], context: OperationContext
    ) -> OperationResult:
        wanted = TreePath(name) if folder is None else folder / name
        async with self._visit(Action.WRITE, wanted) as visit, visit.staged(wanted, content) as staged:
            await in_thread(visit.editor.finish, staged, wanted, executable=False)
            path = await visit.put_free(staged, folder, name)
            after = visit.wrote(staged)
            await visit.note(FileAction.WRITE, path, context, after=after)
            return _result(FileAction.WRITE, path, after=after)

    async def delete(self, path: TreePath, context: OperationContext, *, recursive: bool = False) -> OperationResult:
        async with self._visit(Action.WRITE, path) as visit, visit.turn():
            before = await visit.found(path)
            check_expectation(context, path, before)
            if before.kind is Kind.DIRECTORY:
                await in_thread(visit.editor.drop_folder, path, with_all=recursive)
            elif not await in_thread(visit.editor.remove, path, before.status):
                raise Conflict(f"A program has just changed {path}. Look at it, then delete it again.")
            await visit.note(FileAction.DELETE, path, context, before=before)
            return _result(FileAction.DELETE, path, before=before)

    async def rename(self, path: TreePath, target: TreePath, context: OperationContext) -> OperationResult:
        async with self._visit(Action.WRITE, path, target) as visit, visit.turn():
            before = await visit.found(path)
            check_expectation(context, path, before)
            try:
                await in_thread(visit.editor.move, path, target)
            except FileExistsError:
                raise Conflict(
                    f"There is something at {target} already. Delete it first, or choose another name."
                ) from None
            status = await in_thread(visit.editor.look, target)
            after = Standing(status=status or before.status, hash=before.hash)
            await visit.note(FileAction.RENAME, target, context, before=before, after=after, previous_path=path)
            return _result(FileAction.RENAME, target, before=before, after=after, previous_path=path)

    async def make_folder(self, path: TreePath, context: OperationContext) -> OperationResult:
        async with self._visit(Action.WRITE, path) as visit, visit.turn():
            before = await in_thread(visit.editor.look, path)
            if before is not None and stat.S_ISDIR(before.st_mode):
                return _result(FileAction.MAKE_FOLDER, path, status=OperationStatus.UNCHANGED)
            if before is not None:
                raise Conflict(f"There is a file at {path} already.")
            await in_thread(visit.editor.add_folder, path)
            await visit.note(FileAction.MAKE_FOLDER, path, context, after=await visit.found(path))
            return _result(FileAction.MAKE_FOLDER, path)

    async def history(self, path: TreePath | None, *, before: str | None, limit: int) -> HistoryPage:
        return await self._parts.log.page(
            await self._noted_id(),
            path,
            before=before,
            limit=limit,
            tells_origins=self._caller.administers(self._named.project_id),
        )

    async def sync(self, context: OperationContext) -> PlaceSyncResult:
        async with self._visit(Action.WRITE) as visit, visit.turn():
            at, found = await synced(visit, self._parts, self._caller, context)
        return PlaceSyncResult(at=at, registered=tuple(found))

    async def last_sync(self) -> datetime | None:
        return await self._parts.log.last_sync(await self._noted_id())

    async def usage(self) -> PlaceUsage:
        async with self._visit() as visit:
            given, tree = await visit.trees()
        changed = [after for _, _, after in differences(given, tree) if isinstance(after, FileLeaf)]
        return PlaceUsage(
            disk_usage=tree.sums.bytes,
            uncommitted_bytes=sum(leaf.size for leaf in changed),
            uncommitted_files=len(changed),
            most_bytes=self._parts.quota.bytes,
            most_files=self._parts.quota.files,
        )

    async def _noted_id(self) -> WorkspaceId:
        """Of the workspace whose history is meant: one that was named by its id may have ended."""
        acting = await self._acting(Action.READ)
        if self._named.id is None:
            async with self._visit() as visit:
                return visit.record.id
        record = await self._parts.workspaces.find(self._caller, self._named.id)
        prefix = acting.grant.path_prefix
        if prefix is not None and not f"{record.scope or ''}/".startswith(f"{prefix}/"):
            raise NotFound(f"There is no workspace {self._named.id}.")
        return record.id

    async def _acting(self, action: Action) -> Caller:
        """Who works in the folder, and may do that there: the caller, or the agent that the caller acts for."""
        acting = await self._parts.workspaces.acting(self._caller, self._named)
        acting.require(action, self._named.project_id)
        return acting

    @asynccontextmanager
    async def _visit(self, action: Action = Action.READ, *changed: TreePath) -> AsyncIterator[WorkspaceVisit]:
        await self._acting(action)
        workspaces = self._parts.workspaces
        async with workspaces.visited(self._caller, self._named) as record:
            if record.has_metadata:
                for path in changed:
                    refuse_metadata(path)
            backend = (await workspaces.node.site()).provider
            with await in_thread(FileEditor, record.path, owner=workspaces.node.owner) as editor:
                yield WorkspaceVisit(self._parts, self._caller, record, backend, editor=editor)


def _without_content(path: TreePath) -> InvalidInput:
    return InvalidInput(f"{path} is a folder: it has no content.")


def _result(
    action: FileAction,
    path: TreePath,
    *,
    before: Standing | None = None,
    after: Standing | None = None,
    status: OperationStatus = OperationStatus.WRITTEN,
    previous_path: TreePath | None = None,
) -> OperationResult:
    return OperationResult(
        action=action,
        path=path,
        status=status,
        previous_path=previous_path,
        old_hash=None if before is None else before.hash,
        new_hash=None if after is None else after.hash,
        size=0 if after is None or after.kind is Kind.DIRECTORY else after.status.st_size,
    )
