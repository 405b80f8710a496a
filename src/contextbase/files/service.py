"""The file service: the same operations over a project and over an open workspace."""

from collections.abc import AsyncIterable
from typing import Final

from contextbase.files.content_parts import (
    BYTES_LOOKED_AT,
    MOST_CHARACTERS,
    FileReference,
    MessagePart,
    PartKind,
    TextPart,
    image_part,
    part_kind,
)
from contextbase.files.file_tree import FolderNode
from contextbase.files.free_names import file_name
from contextbase.files.links import DownloadLink, DownloadLinks
from contextbase.files.model import (
    FileDetails,
    FileEntry,
    FilePage,
    OperationContext,
    OperationResult,
    PlaceInfo,
    moment,
)
from contextbase.files.ports import OpenedFile, Place
from contextbase.files.project_place import ProjectFiles, ProjectPlace
from contextbase.files.slices import MOST_AT_ONCE, FileSlice, SliceReader, part_of_content
from contextbase.files.workspace_place import WorkspacePlace
from contextbase.files.workspace_visit import WorkspaceFiles
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId, Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.model import NamedWorkspace

__all__ = ["UPLOAD_FOLDER", "FileService"]

UPLOAD_FOLDER: Final = TreePath("upload")
"""Where uploads go unless they say where."""


class FileService:
    """Open a place as a caller, then read and change files in it. What a place does alone is called on the place."""

    def __init__(self, *, projects: ProjectFiles, workspaces: WorkspaceFiles, links: DownloadLinks) -> None:
        self._projects = projects
        self._links = links
        self._workspaces = workspaces
        self._slices = SliceReader()

    def project(self, caller: Caller, project_id: ProjectId, seq: Seq | None = None) -> Place:
        """A project at a snapshot (None: the head)."""
        return ProjectPlace(self._projects, caller, project_id, seq)

    def workspace(self, caller: Caller, named: NamedWorkspace) -> Place:
        """An agent's open workspace."""
        return WorkspacePlace(self._workspaces, caller, named)

    async def list(self, place: Place, folder: TreePath | None, *, after: str = "", limit: int = 1000) -> FilePage:
        """A folder's entries by name, after a name. If the path is a file's, that file alone."""
        node = await place.folder(folder)
        names = sorted(name for name in (*node.files, *node.folders) if name > after)
        shown = names[:limit]
        unknown = [name for name in shown if name in node.files and _needs_look(node, name)]
        mimes = await place.mimes(folder, unknown) if unknown else {}
        entries = tuple(_entry(folder, name, node, mimes.get(name, "")) for name in shown)
        return FilePage(entries=entries, next_after=shown[-1] if len(names) > limit else None)

    async def read(
        self, place: Place, path: TreePath, *, offset: int = 0, length: int = MOST_AT_ONCE
    ) -> tuple[OpenedFile, FileSlice]:
        """A part of a file, and what the file is."""
        async with place.opened(path) as opened:
            return opened, await self._slices.read(opened.content, offset=offset, length=length)

    async def message_part(self, place: Place, path: TreePath) -> tuple[FileDetails, MessagePart]:
        """The file as a part of a message to a model, and what it is."""
        details = await place.details(path)
        if details.entry.kind is not Kind.FILE:
            return details, FileReference(reason=part_kind(details, characters=None, start=b""))
        async with place.opened(path) as opened:
            content = opened.content
            index = await self._slices.index_of(content)
            start = await part_of_content(content, 0, min(BYTES_LOOKED_AT, content.size))
            characters = None if index is None else index.characters
            kind = part_kind(opened.details, characters=characters, start=start)
            if kind is PartKind.TEXT:
                text = await self._slices.text(content, most=MOST_CHARACTERS)
                return opened.details, TextPart(text=text)
            if kind is PartKind.IMAGE:
                return opened.details, image_part(await part_of_content(content, 0, content.size))
            return opened.details, FileReference(reason=kind)

    async def link(self, place: Place, path: TreePath) -> tuple[FileDetails, DownloadLink]:
        """A URL by which anybody can download the file for a short time, past this server, and what the file is. Raises
        `Conflict` where there can be none."""
        details = await place.details(path)
        return details, await self._links.make(details)

    async def info(self, place: Place) -> PlaceInfo:
        sums = (await place.tree()).sums
        return PlaceInfo(
            files=sums.files,
            folders=sums.folders,
            disk_usage=sums.bytes,
            last_modified=moment(sums.newest_ns),
            last_sync=await place.last_sync(),
        )

    async def upload(
        self,
        place: Place,
        name: str,
        content: AsyncIterable[bytes],
        context: OperationContext,
        *,
        folder: TreePath | None = UPLOAD_FOLDER,
    ) -> OperationResult:
        """A new file in a folder, under a name that no other file has; raises `InvalidPath` for what is not a name."""
        return await place.add(folder, file_name(name), content, context)


def _needs_look(node: FolderNode, name: str) -> bool:
    leaf = node.files[name]
    return leaf.kind is Kind.FILE and not leaf.mime


def _entry(folder: TreePath | None, name: str, node: FolderNode, mime: str) -> FileEntry:
    path = TreePath.stored(f"{folder}/{name}" if folder else name)
    leaf = node.files.get(name)
    if leaf is not None:
        return FileEntry(
            path=path, kind=leaf.kind, size=leaf.size, modified_at=moment(leaf.modified_ns), mime=leaf.mime or mime
        )
    newest = node.folders[name].sums.newest_ns
    return FileEntry(path=path, kind=Kind.DIRECTORY, size=0, modified_at=moment(newest), mime="")
