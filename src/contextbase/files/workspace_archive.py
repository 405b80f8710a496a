"""A folder of a workspace as a tar or zip file, made while it is read."""

import os
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime

from contextbase.errors import ContextbaseError
from contextbase.files.file_tree import FileLeaf, FolderNode
from contextbase.files.folder_file import FolderFile
from contextbase.files.model import moment
from contextbase.history.archive_writers import ArchiveEntry, ArchiveFormat, ArchiveWriter, writer_of
from contextbase.ids import TreePath
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.file_editor import FileEditor

__all__ = ["archived"]


@asynccontextmanager
async def archived(
    editor: FileEditor, tree: FolderNode, path: TreePath | None, form: ArchiveFormat
) -> AsyncIterator[AsyncGenerator[bytes]]:
    """What is at or below the path (None: everything), under the names it has in the workspace. A file that is gone
    when its turn comes is left out; one that gets shorter meanwhile breaks the archive off."""
    async with aclosing(_pieces(editor, tree, path, writer_of(form))) as pieces:
        yield pieces


async def _pieces(
    editor: FileEditor, tree: FolderNode, path: TreePath | None, writer: ArchiveWriter
) -> AsyncGenerator[bytes]:
    for place, leaf in _entries(tree, path):
        if leaf is None or leaf.kind is Kind.SYMLINK:
            try:
                target = b"" if leaf is None else await in_thread(editor.link_target, place)
            except ContextbaseError:
                continue
            yield writer.begin(_entry(place, leaf, size=0), target)
            continue
        try:
            descriptor = await in_thread(editor.open_file, place)
        except ContextbaseError:
            continue
        try:
            content = FolderFile(descriptor)
            entry = _entry(place, leaf, size=content.size)
            yield writer.begin(entry, b"")
            left = content.size
            async with aclosing(content.stream(0, content.size)) as parts:
                async for part in parts:
                    left -= len(part)
                    yield await in_thread(writer.add, part)
            if left:
                raise OSError(f"{place} got shorter while it was read")
            yield writer.finish(entry)
        finally:
            os.close(descriptor)
    yield writer.end()


def _entries(tree: FolderNode, path: TreePath | None) -> Iterator[tuple[TreePath, FileLeaf | None]]:
    """Files and links; of folders those that are empty, for the others are told by what is in them."""
    leaf = None if path is None else tree.leaf(path)
    if path is not None and leaf is not None:
        yield path, leaf
        return
    top = tree.folder(path or "")
    for place, folder in () if top is None else top.walk(path or ""):
        if place and not folder.files and not folder.folders:
            yield TreePath.stored(place), None
        for name in sorted(folder.files):
            yield TreePath.stored(f"{place}/{name}" if place else name), folder.files[name]


def _entry(path: TreePath, leaf: FileLeaf | None, *, size: int) -> ArchiveEntry:
    at = None if leaf is None else moment(leaf.modified_ns)
    kind = Kind.DIRECTORY if leaf is None else leaf.kind
    modes = {Kind.FILE: 0o755 if leaf and leaf.executable else 0o644, Kind.SYMLINK: 0o777}
    return ArchiveEntry(
        path=path,
        kind=kind,
        content_hash=None,
        size=size,
        mode=modes.get(kind, 0o755),
        at=at or datetime(1980, 1, 1, tzinfo=UTC),
    )
