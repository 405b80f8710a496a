"""What is known about the files of a workspace, as JSON in `.meta`: made when it is read, and never in the folder."""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any, Final

from contextbase.db.queries import load_queries
from contextbase.errors import Forbidden
from contextbase.files.file_tree import EMPTY, FileLeaf, FolderNode, changed
from contextbase.files.model import FileDetails, FileEntry, FileOperation, moment
from contextbase.files.workspace_tree import one_folder
from contextbase.files.workspace_visit import WorkspaceFiles, WorkspaceVisit, nothing_in_workspace
from contextbase.gate.content_types import content_type
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.threads import in_thread

__all__ = ["MetadataDocument", "WorkspaceMetadata", "is_metadata", "refuse_metadata", "with_metadata"]

_FOLDER: Final = TreePath(".meta")
_OF_PLACE: Final = _FOLDER / ".meta"
_SQL: Final = load_queries("contextbase.files")
_JSON: Final = "application/json"
_MOST_ENTRIES: Final = 10_000  # of one document: about 1.5 MB
_MOST_OPERATIONS: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class MetadataDocument:
    details: FileDetails
    content: bytes | None  # None: a folder


def is_metadata(path: TreePath | None) -> bool:
    return path is not None and (path == _FOLDER or path.is_below(_FOLDER))


def refuse_metadata(path: TreePath | None) -> None:
    """Raise `Forbidden` for what nobody can write."""
    if is_metadata(path):
        raise Forbidden(f"{path} is made from what is known about the files. It can be read, but not changed.")


def with_metadata(top: FolderNode) -> FolderNode:
    """What programs keep at `.meta` themselves is not shown."""
    return changed(top, {_FOLDER: EMPTY})


class WorkspaceMetadata:
    def __init__(self, parts: WorkspaceFiles, visit: WorkspaceVisit) -> None:
        self._parts = parts
        self._visit = visit

    async def folder(self, path: TreePath) -> FolderNode | None:
        """As the folder that it is about, with a document for each file; None: there is no such folder. Sizes are not
        told, because a document is made when it is read."""
        subject = _subject(path)
        if path == _OF_PLACE or is_metadata(subject):
            return None
        found = one_folder(await self._visit.given(), await self._visit.scan(subject))
        if found is None:
            return None
        files = {name: FileLeaf(Kind.FILE, 0, leaf.modified_ns, _JSON) for name, leaf in found.files.items()}
        node = FolderNode(files, found.folders, stands=True, modified_ns=found.modified_ns)
        return node if subject is not None else changed(node, {_OF_PLACE.name: FileLeaf(Kind.FILE, 0, 0, _JSON)})

    async def document(self, path: TreePath) -> MetadataDocument:
        """Raises `NotFound`."""
        if path == _OF_PLACE:
            return await self._of_place()
        subject = _subject(path)
        if subject is None:
            return _folder(path, None)
        if is_metadata(subject):
            raise nothing_in_workspace(path)
        about = await self._visit.details(subject)
        if about.entry.kind is Kind.DIRECTORY:
            return _folder(path, about.entry.modified_at)
        return await self._of_file(path, about)

    async def _of_place(self) -> MetadataDocument:
        record = self._visit.record
        _, tree = await self._visit.trees()
        newest = moment(tree.sums.newest_ns)
        told = {
            "workspace": str(record.id),
            "project_id": str(record.project_id),
            "agent": str(record.principal),
            "folder": record.folder,
            "base_seq": record.base,
            "shown_seq": record.shown,
            "commits": record.checkpoint,
            "created_at": _time(record.created_at),
            "files": tree.sums.files,
            "folders": tree.sums.folders,
            "diskUsage": tree.sums.bytes,
            "lastModified": _time(newest),
            "lastSync": _time(await self._parts.log.last_sync(record.id)),
        }
        return await in_thread(_place_document, told, tree, newest)

    async def _of_file(self, path: TreePath, about: FileDetails) -> MetadataDocument:
        entry = about.entry
        page = await self._parts.log.page(
            self._visit.record.id, entry.path, before=None, limit=_MOST_OPERATIONS, tells_origins=False
        )
        done = [_operation(one) for one in page.operations]
        last = done[0] if done else await self._commit_of(entry.path)
        is_last = last is not None and last["new_hash"] == _text(about.hash)
        told = {
            **_basic(entry),
            "hash": _text(about.hash),
            "executable": about.executable,
            "last_change": last if is_last else None,  # a program changed it since, and nobody called sync
            "message_ids": [one["message_id"] for one in done if one["message_id"] is not None],
            "history": done,
        }
        return _document(path, told, entry.modified_at)

    async def _commit_of(self, path: TreePath) -> dict[str, Any] | None:
        """What made the file that the workspace was given."""
        view = await self._visit.view()
        async with self._parts.database.connection() as connection:
            row = await connection.fetchrow(
                _SQL.commit_of_path, view.snapshot.project_id, view.snapshot.seq, view.paths.in_project(path)
            )
        if row is None:
            return None
        return {
            "at": _time(row["committed_at"]),
            "action": "commit",
            "by": f"{row['principal_kind']}:{row['principal_name']}",
            "operator_type": row["operator_type"],
            "message_id": row["message_id"],
            "new_hash": None if row["content_hash"] is None else str(ContentHash(row["content_hash"])),
            "seq": row["seq"],
        }


def _subject(path: TreePath) -> TreePath | None:
    """What a path in `.meta` is about; None: all of the workspace."""
    return None if path in (_FOLDER, _OF_PLACE) else TreePath.stored(path.removeprefix(f"{_FOLDER}/"))


def _folder(path: TreePath, modified_at: datetime | None) -> MetadataDocument:
    entry = FileEntry(path=path, kind=Kind.DIRECTORY, size=0, modified_at=modified_at, mime="")
    return MetadataDocument(details=FileDetails(entry=entry, hash=None), content=None)


def _document(path: TreePath, told: dict[str, Any], modified_at: datetime | None) -> MetadataDocument:
    content = f"{json.dumps(told, ensure_ascii=False, indent=1)}\n".encode()
    entry = FileEntry(path=path, kind=Kind.FILE, size=len(content), modified_at=modified_at, mime=_JSON)
    return MetadataDocument(details=FileDetails(entry=entry, hash=ContentHash.of(content)), content=content)


def _place_document(told: dict[str, Any], tree: FolderNode, newest: datetime | None) -> MetadataDocument:
    entries = [_basic(entry) for entry in islice(_entries(tree), _MOST_ENTRIES)]
    left_off = tree.sums.files + tree.sums.folders - len(entries)
    return _document(_OF_PLACE, {**told, "entries": entries, "entries_left_off": left_off}, newest)


def _entries(tree: FolderNode) -> Iterator[FileEntry]:
    for place, node in tree.walk():
        if place:
            newest = moment(node.sums.newest_ns)
            yield FileEntry(path=TreePath.stored(place), kind=Kind.DIRECTORY, size=0, modified_at=newest, mime="")
        for name in sorted(node.files):
            leaf = node.files[name]
            path = TreePath.stored(f"{place}/{name}" if place else name)
            mime = leaf.mime or content_type(path, b"") if leaf.kind is Kind.FILE else ""
            yield FileEntry(path=path, kind=leaf.kind, size=leaf.size, modified_at=moment(leaf.modified_ns), mime=mime)


def _basic(entry: FileEntry) -> dict[str, Any]:
    return {
        "path": entry.path,
        "kind": entry.kind.value,
        "size": entry.size,
        "modified_at": _time(entry.modified_at),
        "mime": entry.mime,
    }


def _operation(one: FileOperation) -> dict[str, Any]:
    return {
        "at": _time(one.at),
        "action": one.action.value,
        "path": one.path,
        "previous_path": one.previous_path,
        "by": one.principal,
        "operator_type": one.operator_type,
        "message_id": one.message_id,
        "new_hash": _text(one.new_hash),
    }


def _time(at: datetime | None) -> str | None:
    return None if at is None else at.isoformat()


def _text(value: ContentHash | None) -> str | None:
    return None if value is None else str(value)
