"""Files that people send with a message: stored with it, and put into the session's folder when its run begins.

They lie in `upload`, which ignores itself: they are the session's own, and no project gets them unless somebody moves
them.
"""

import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Final

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, InvalidInput, TooLarge
from contextbase.ids import ContentHash, TreePath
from contextbase.sessions.model import RunId, StoredAttachment
from contextbase.storage.blobs.catalog import BlobCatalog
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.editor import FolderEditor
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import FolderContent, Owner
from contextbase.workspaces.repository import WorkspaceRecord

__all__ = ["UPLOADS", "AttachedFile", "RunAttachments"]

_SQL: Final = load_queries("contextbase.sessions")

UPLOADS: Final = "upload"
_MOST: Final = 20
_MOST_BYTES: Final = 5 << 20  # in base64 it is less than what a request may have
_LONGEST_NAME: Final = 200
_MOST_NAMES: Final = 100


@dataclass(frozen=True, kw_only=True, slots=True)
class AttachedFile:
    """As somebody sends it."""

    name: str
    media_type: str
    content: bytes


@dataclass(frozen=True, kw_only=True, slots=True)
class RunAttachments:
    database: Database
    catalog: BlobCatalog

    async def stored(self, files: Sequence[AttachedFile]) -> tuple[StoredAttachment, ...]:
        """Their contents are kept for as long as it takes to send the message. Raises `InvalidInput`, `TooLarge`."""
        if len(files) > _MOST or sum(len(file.content) for file in files) > _MOST_BYTES:
            raise TooLarge(f"A message has at most {_MOST} files with {_MOST_BYTES >> 20} MiB in all.")
        if len({file.name for file in files}) < len(files):
            raise InvalidInput("Two files of a message have the same name; rename one.")
        stored = []
        for file in files:
            _check_name(file.name)
            put = await self.catalog.put_bytes(file.content)
            stored.append(
                StoredAttachment(name=file.name, media_type=file.media_type, hash=put.hash, size=len(file.content))
            )
        return tuple(stored)

    async def place(self, run_id: RunId, record: WorkspaceRecord, owner: Owner) -> list[dict[str, str]]:
        """Put those of a run into its session's folder, and say where they are. Done again, it changes nothing."""
        async with self.database.connection() as connection:
            rows = await connection.fetch(_SQL.attachments_of_run, run_id)
        placed = []
        for row in rows:
            content = await self.catalog.read(ContentHash(row["content_hash"]))
            try:
                path = await in_thread(_place, record, owner, row["name"], content)
            except OSError as error:
                message = f"The file {row['name']!r} could not be put into the session's folder: {error}"
                raise Conflict(message) from None
            placed.append({"path": path, "media_type": row["media_type"]})
        return placed


def _check_name(name: str) -> None:
    is_one = "/" not in name and name not in ("", ".", "..") and name.isprintable() and not name.startswith(".")
    if not is_one or len(name.encode()) > _LONGEST_NAME:
        raise InvalidInput(f"{name[:80]!r} is not the name of a file that can be sent: no folders, no dot in front.")
    TreePath(f"{UPLOADS}/{name}")  # and not what it could be read as


def _place(record: WorkspaceRecord, owner: Owner, name: str, content: bytes) -> str:
    """Beside a file of that name that is another one."""
    kind = FolderContent(kind=Kind.FILE, executable=False)
    with FolderEditor(record.path, owner=owner) as editor:
        editor.make_folder(TreePath.parse(UPLOADS))
        with Folder(record.path) as folder, editor.parent_of(TreePath.parse(f"{UPLOADS}/x"), make=True) as parent:
            if not _exists(parent, ".gitignore"):
                editor.write_entry(parent, ".gitignore", kind, b"*\n")
            for number in range(1, _MOST_NAMES):
                free = _numbered(name, number)
                if not _exists(parent, free):
                    editor.write_entry(parent, free, kind, content)
                elif not _has(folder, f"{UPLOADS}/{free}", content):
                    continue
                editor.sync()
                return f"{UPLOADS}/{free}"
    raise FileExistsError(f"{UPLOADS} has too many files of that name")


def _exists(parent: int, name: str) -> bool:
    try:
        os.stat(name, dir_fd=parent, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _has(folder: Folder, path: str, content: bytes) -> bool:
    try:
        return folder.read(path, most=len(content) + 1) == content
    except OSError:
        return False


def _numbered(name: str, number: int) -> str:
    if number == 1:
        return name
    path = PurePosixPath(name)
    return f"{path.stem}-{number}{path.suffix}"
