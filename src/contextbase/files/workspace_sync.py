"""What programs did in a workspace without telling: found by comparing what stands there with what was registered."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from contextbase.db.queries import load_queries
from contextbase.errors import ContextbaseError
from contextbase.files.file_tree import FileLeaf, FolderNode, differences
from contextbase.files.model import EXTERNAL, FileAction, OperationContext, OperationResult
from contextbase.files.operation_log import NewOperation, OperationBatch
from contextbase.files.registered_tree import RegisteredTree
from contextbase.files.workspace_tree import leaf_of
from contextbase.files.workspace_visit import WorkspaceFiles, WorkspaceVisit
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind

__all__ = ["synced"]

_SQL: Final = load_queries("contextbase.files")


@dataclass(frozen=True, kw_only=True, slots=True)
class _Difference:
    path: TreePath
    before: FileLeaf | FolderNode | None  # as registered
    after: FileLeaf | FolderNode | None


async def synced(
    visit: WorkspaceVisit, parts: WorkspaceFiles, caller: Caller, context: OperationContext
) -> tuple[datetime, list[OperationResult]]:
    """Register what is new; returns when that was, and what it is."""
    given, tree = await visit.trees()
    registered = RegisteredTree(given)
    registered.replay(await parts.log.since(visit.record.id, 0))
    found = [
        _Difference(path=path, before=before, after=after)
        for path, before, after in differences(registered.tree, tree)
        if not _is_implied(before, after)
    ]
    old_hashes = await _old_hashes(visit, parts, registered, found)
    operations = [
        operation for one in found if (operation := await _operation(visit, one, old_hashes.get(one.path))) is not None
    ]
    own = NewOperation(
        action=FileAction.SYNC, kind=Kind.DIRECTORY, operator_type=caller.way_in, principal_id=caller.principal.id
    )
    counted = "1 change" if len(operations) == 1 else f"{len(operations)} changes"
    batch = OperationBatch(
        project_id=visit.record.project_id,
        workspace_id=visit.record.id,
        paths=visit.record.paths,
        operations=[*operations, own],
        by=caller,
        message_id=context.message_id,
        summary=f"registered {counted} that programs made in a workspace",
    )
    return await parts.log.record(batch), [_result(one) for one in operations if one.path is not None]


def _is_implied(before: FileLeaf | FolderNode | None, after: FileLeaf | FolderNode | None) -> bool:
    """A folder that came with something in it is told by that."""
    return before is None and isinstance(after, FolderNode) and bool(after.files or after.folders)


async def _old_hashes(
    visit: WorkspaceVisit, parts: WorkspaceFiles, registered: RegisteredTree, found: Iterable[_Difference]
) -> dict[TreePath, ContentHash]:
    """By path: what an operation wrote there, or what the workspace was given."""
    hashes: dict[TreePath, ContentHash] = {}
    asked: dict[TreePath, TreePath] = {}
    for one in found:
        if not isinstance(one.before, FileLeaf):
            continue
        if (known := registered.hash_of(one.path)) is not None:
            hashes[one.path] = known
        else:
            asked[registered.given_as(one.path)] = one.path
    if asked:
        view = await visit.view()
        places = {view.paths.in_project(path): own for path, own in asked.items()}
        async with parts.database.connection() as connection:
            rows = await connection.fetch(_SQL.hashes_at, view.snapshot.project_id, view.snapshot.seq, list(places))
        hashes |= {places[TreePath.stored(row["path"])]: ContentHash(row["content_hash"]) for row in rows}
    return hashes


async def _operation(
    visit: WorkspaceVisit, difference: _Difference, old_hash: ContentHash | None
) -> NewOperation | None:
    """None: it only looked so, as a file does that was touched; or it is gone again, or closed to us."""
    path, before, after = difference.path, difference.before, difference.after
    principal_id = visit.record.principal.id
    if after is None:
        return NewOperation(
            action=FileAction.DELETE,
            path=path,
            kind=Kind.DELETED,
            old_hash=old_hash,
            operator_type=EXTERNAL,
            principal_id=principal_id,
        )
    if isinstance(after, FolderNode):
        return NewOperation(
            action=FileAction.MAKE_FOLDER,
            path=path,
            kind=Kind.DIRECTORY,
            operator_type=EXTERNAL,
            principal_id=principal_id,
        )
    try:
        standing = await visit.standing(path)
    except ContextbaseError:
        return None
    leaf = None if standing is None else leaf_of(standing.status)
    if standing is None or leaf is None:
        return None
    was = before if isinstance(before, FileLeaf) else None
    if was is not None and (was.kind, was.executable, old_hash) == (leaf.kind, leaf.executable, standing.hash):
        return None
    return NewOperation(
        action=FileAction.WRITE,
        path=path,
        kind=leaf.kind,
        old_hash=old_hash,
        new_hash=standing.hash,
        size=leaf.size,
        executable=leaf.executable,
        modified_ns=leaf.modified_ns,
        stamp=leaf.stamp,
        operator_type=EXTERNAL,
        principal_id=principal_id,
    )


def _result(operation: NewOperation) -> OperationResult:
    assert operation.path is not None, "a sync names what it found"  # noqa: S101 - for the type checker
    return OperationResult(
        action=operation.action,
        path=operation.path,
        old_hash=operation.old_hash,
        new_hash=operation.new_hash,
        size=operation.size,
    )
