"""Reading, writing, editing, deleting and listing files, and showing them to people."""

from collections.abc import AsyncIterator
from typing import Final

from contextbase.errors import Conflict, InvalidInput, NotFound, PreconditionFailed, TooLarge
from contextbase.files.content_parts import ImagePart
from contextbase.files.model import FileDetails, FileEntry, OperationContext, OperationResult, OperationStatus
from contextbase.files.ports import Place
from contextbase.files.service import FileService
from contextbase.files.slices import MOST_AT_ONCE, FileSlice, SliceEncoding, part_of_content
from contextbase.gate.model import Expectation
from contextbase.identity.model import Action
from contextbase.ids import ContentHash, TreePath
from contextbase.storage.model import Kind
from contextbase.streams.model import NewEvent, Scope
from contextbase.streams.service import StreamService
from contextbase.tools.arguments import ArgumentKind, Parameter
from contextbase.tools.edits import replaced
from contextbase.tools.model import LONGEST_ANSWER, Tool, ToolCall, ToolPlace, ToolResult
from contextbase.tools.places import place_files
from contextbase.tools.wording import bytes_shown, fitting, listed, moment_shown

__all__ = ["PATH", "FileTools", "folder_argument"]

PATH: Final = Parameter(name="path", is_required=True)
SHOW_EVENT: Final = "ui.show_files"
_FOLDER: Final = Parameter(name="subDir", description="Default: the top.")
_LONGEST_CONTENT: Final = 4 << 20
_MOST_LISTED: Final = 500
_MOST_NEIGHBOURS: Final = 12
_TRIES: Final = 5


class FileTools:
    def __init__(self, *, files: FileService, streams: StreamService) -> None:
        self._files = files
        self._streams = streams

    @property
    def tools(self) -> tuple[Tool, ...]:
        return (
            Tool(
                name="read_file",
                description="Read a file, or a part of a long one: 5000 characters at a time. Images are shown.",
                parameters=(
                    PATH,
                    Parameter(
                        name="offset", kind=ArgumentKind.NUMBER, description="Characters to skip.", least=0, most=2**53
                    ),
                    Parameter(name="length", kind=ArgumentKind.NUMBER, least=1, most=2**31),
                ),
                is_basic=True,
                run=self.read_file,
            ),
            Tool(
                name="write_file",
                description="Create a file, or replace all of it. To change a part, use edit_file.",
                parameters=(
                    PATH,
                    Parameter(name="content", is_required=True, longest=_LONGEST_CONTENT),
                    Parameter(name="mimeType", longest=200),
                ),
                needs=Action.WRITE,
                is_destructive=True,
                is_idempotent=True,
                is_basic=True,
                run=self.write_file,
            ),
            Tool(
                name="edit_file",
                description="Replace text in a file. old must match exactly and be there once, unless all is true.",
                parameters=(
                    PATH,
                    Parameter(name="old", is_required=True, longest=_LONGEST_CONTENT),
                    Parameter(name="new", is_required=True, longest=_LONGEST_CONTENT),
                    Parameter(name="all", kind=ArgumentKind.FLAG),
                ),
                needs=Action.WRITE,
                is_destructive=True,
                is_basic=True,
                run=self.edit_file,
            ),
            Tool(
                name="delete_file",
                description="Delete a file or an empty folder. Its history stays.",
                parameters=(PATH,),
                needs=Action.WRITE,
                is_destructive=True,
                run=self.delete_file,
            ),
            Tool(
                name="list_files",
                description="List a folder: names, sizes, subfolders.",
                parameters=(_FOLDER, Parameter(name="after", description="A name to go on after.")),
                is_basic=True,
                run=self.list_files,
            ),
            Tool(
                name="show_files",
                description="Show files to the user, in their own window. Returns what they are, not their text.",
                parameters=(Parameter(name="paths", kind=ArgumentKind.TEXTS, is_required=True),),
                run=self.show_files,
            ),
            Tool(
                name="get_workspace_info",
                description="Where you work: project, workspace, number and size of files.",
                run=self.get_workspace_info,
            ),
        )

    async def read_file(self, call: ToolCall) -> ToolResult:
        path = TreePath.parse(call.arguments.text("path"))
        offset = call.arguments.number("offset", 0)
        length = min(call.arguments.number("length", MOST_AT_ONCE), MOST_AT_ONCE)
        try:
            opened, part = await self._files.read(self._place(call), path, offset=offset, length=length)
            if part.encoding is SliceEncoding.BASE64 and not offset and call.arguments.number("length", 0) == 0:
                details, whole = await self._files.message_part(self._place(call), path)
                if isinstance(whole, ImagePart):
                    return _image(details, whole)
        except NotFound as error:
            raise await self._with_neighbours(self._place(call), path, error) from error
        mime = opened.details.entry.mime
        data = {
            "path": path,
            "content": part.content,
            "encoding": part.encoding.value,
            "mimeType": mime,
            "start": part.start,
            "total": part.total,
            "readLength": part.read_length,
        }
        return ToolResult(text=part.content, note=_part_note(path, mime, part), data=data)

    async def write_file(self, call: ToolCall) -> ToolResult:
        path = TreePath.parse(call.arguments.text("path"))
        content = call.arguments.text("content").encode()
        context = OperationContext(message_id=call.message_id)
        mime = call.arguments.text("mimeType")
        change = await self._place(call).write(path, _pieces(content), context, mime=mime)
        return _changed(call.place, change, f"Wrote {path} ({bytes_shown(len(content))})")

    async def edit_file(self, call: ToolCall) -> ToolResult:
        path = TreePath.parse(call.arguments.text("path"))
        old, new, everywhere = call.arguments.text("old"), call.arguments.text("new"), call.arguments.flag("all")
        place = self._place(call)
        for _ in range(_TRIES):
            text, found = await self._editable(place, path)
            edited, count = replaced(text, old, new, everywhere=everywhere, path=path)
            try:
                change = await place.write(
                    path,
                    _pieces(edited.encode()),
                    OperationContext(message_id=call.message_id, expects=Expectation(contents=frozenset({found}))),
                )
            except PreconditionFailed:
                continue  # somebody wrote it meanwhile: look again
            told = "Edited" if count == 1 else f"Replaced {count} times in"
            return _changed(call.place, change, f"{told} {path}", replaced=count)
        raise Conflict(f"Others keep writing {path}. Read it, and edit it again.")

    async def delete_file(self, call: ToolCall) -> ToolResult:
        path = TreePath.parse(call.arguments.text("path"))
        change = await self._place(call).delete(path, OperationContext(message_id=call.message_id))
        return _changed(call.place, change, f"Deleted {path}")

    async def list_files(self, call: ToolCall) -> ToolResult:
        folder = folder_argument(call)
        after = call.arguments.text("after")
        page = await self._files.list(self._place(call), folder, after=after, limit=_MOST_LISTED)
        entries, next_after = page.entries, page.next_after
        lines, is_all = fitting(map(_line, entries), LONGEST_ANSWER)
        if not is_all:
            next_after = entries[len(lines) - 1].path.name
        note = f"There are more: call list_files again with after={next_after!r}." if next_after else ""
        data = {"files": [_entry(entry) for entry in entries[: len(lines)]], "nextAfter": next_after}
        return ToolResult(text="\n".join(lines) or "The folder is empty.", note=note, data=data)

    async def show_files(self, call: ToolCall) -> ToolResult:
        paths = dict.fromkeys(TreePath.parse(path) for path in call.arguments.texts("paths"))
        files = [(await self._place(call).details(path)).entry for path in paths]
        by, place = call.place.acting.principal.id, call.place
        # A workspace's files are for those who may see the workspace: they may be uncommitted.
        scope = Scope.project(place.project_id) if place.workspace_id is None else Scope.workspace(place.workspace_id)
        events = [
            # One for each file, so that each is told to those who may see it, and to nobody else.
            NewEvent(
                kind=SHOW_EVENT,
                principal_id=by,
                path=place.paths.in_project(file.path),
                payload=_entry(file) | {"isWorkspace": place.is_workspace, "messageId": call.message_id},
            )
            for file in files
        ]
        await self._streams.publish(scope, *events)
        text = "Shown to the user:\n" + "\n".join(
            f"{file.path} ({file.mime or 'folder'}, {bytes_shown(file.size)})" for file in files
        )
        return ToolResult(text=text, data={"action": "show", "files": [_entry(file) for file in files]})

    async def get_workspace_info(self, call: ToolCall) -> ToolResult:
        place = call.place
        sums = await self._files.info(self._place(call))
        principal, folder = place.acting.principal, place.paths.folder or place.acting.grant.path_prefix
        where = f"{place.project}/{folder}" if folder else place.project
        how = (
            f"in a workspace made from snapshot {place.base}: nobody sees your changes until you commit"
            if place.is_workspace
            else "on the project itself: each change is a commit that everybody sees"
        )
        text = (
            f"You are {principal} and work in the project {where}, {how}.\n"
            f"{sums.files} files in {sums.folders} folders, {bytes_shown(sums.disk_usage)}, last changed "
            f"{moment_shown(sums.last_modified)}."
        )
        data = {
            "project": place.project,
            "folder": folder,
            "agent": str(principal),
            "isWorkspace": place.is_workspace,
            "base": place.base,
            "files": sums.files,
            "folders": sums.folders,
            "diskUsage": sums.disk_usage,
            "lastModified": None if sums.last_modified is None else sums.last_modified.isoformat(),
            "lastSync": None if sums.last_sync is None else sums.last_sync.isoformat(),
        }
        return ToolResult(text=text, data=data)

    def _place(self, call: ToolCall) -> Place:
        return place_files(self._files, call.place)

    async def _editable(self, place: Place, path: TreePath) -> tuple[str, ContentHash]:
        """A text that can be replaced, and what it must still be by then."""
        try:
            async with place.opened(path) as opened:
                if opened.details.entry.kind is not Kind.FILE:
                    raise InvalidInput(f"{path} is a link, not a file; edit the file that it leads to.")
                if opened.content.size > _LONGEST_CONTENT:
                    raise TooLarge(f"{path} has more than {_LONGEST_CONTENT} bytes, the most that edit_file takes.")
                content = await part_of_content(opened.content, 0, opened.content.size)
        except NotFound as error:
            raise await self._with_neighbours(place, path, error) from error
        try:
            return content.decode(), ContentHash.of(content)
        except UnicodeDecodeError:
            raise InvalidInput(f"{path} is not UTF-8 text, so it cannot be edited; write_file replaces it.") from None

    async def _with_neighbours(self, place: Place, path: TreePath, error: NotFound) -> NotFound:
        """The same error, with what is in the folder instead."""
        try:
            entries = (await self._files.list(place, path.parent, limit=_MOST_LISTED)).entries
        except (NotFound, InvalidInput, Conflict):
            return NotFound(f"{error.message} Look with list_files or find_files.")
        names = [f"{entry.path.name}/" if entry.kind is Kind.DIRECTORY else entry.path.name for entry in entries]
        near = sorted(names, key=lambda name: _distance(name, path.name))
        where = f"{path.parent}/" if path.parent else "the top folder"
        there = f"In {where} there is: {listed(near, _MOST_NEIGHBOURS)}." if near else f"{where} is empty."
        return NotFound(f"{error.message} {there}")


def _image(details: FileDetails, image: ImagePart) -> ToolResult:
    """Base64 in pieces would be of no use to a model; it can look at the whole."""
    entry = details.entry
    data = {
        "path": entry.path,
        "content": image.data,
        "encoding": SliceEncoding.BASE64.value,
        "mimeType": image.media_type,
        "start": 0,
        "total": entry.size,
        "readLength": entry.size,
    }
    text = f"{entry.path} is an image ({image.media_type}, {bytes_shown(entry.size)})."
    return ToolResult(text=text, data=data, image=image)


def folder_argument(call: ToolCall) -> TreePath | None:
    given = call.arguments.text("subDir").strip()
    return None if given in ("", ".", "./", "/", "/workspace", "/workspace/") else TreePath.parse(given)


def _part_note(path: TreePath, mime: str, part: FileSlice) -> str:
    unit = "characters" if part.encoding is SliceEncoding.TEXT else "bytes"
    end = part.start + part.read_length
    if part.total == 0:
        return f"{path} is empty."
    if part.read_length == 0:
        return f"{path} has {part.total} {unit}: there is nothing at offset {part.start}."
    told = "" if part.encoding is SliceEncoding.TEXT else f"Base64 of {path} ({mime}). "
    if end < part.total:
        return f"{told}{unit.capitalize()} {part.start} to {end} of {part.total}. Read on with offset={end}."
    if part.start:
        return f"{told}{unit.capitalize()} {part.start} to {end}, the end."
    return told.strip()


_STATUSES: Final = {
    OperationStatus.UNCHANGED: " It was so already.",
    OperationStatus.MERGED: " It was merged with what others wrote meanwhile: read it again before you go on.",
    OperationStatus.SUPERSEDED: " The project prefers what stands there: yours is kept beside it.",
    OperationStatus.IN_REVIEW: " It conflicts with what others wrote, so a person decides. Go on with other work.",
}


def _changed(place: ToolPlace, change: OperationResult, told: str, **more: object) -> ToolResult:
    where = " in your workspace. Call commit when others shall see it." if place.is_workspace else "."
    seq = (
        f", as commit {change.seq}" if change.seq is not None and change.status is not OperationStatus.UNCHANGED else ""
    )
    data = {"path": change.path, "status": change.status.value, "seq": change.seq, "size": change.size, **more}
    return ToolResult(text=f"{told}{seq}{where}{_STATUSES.get(change.status, '')}", data=data)


async def _pieces(content: bytes) -> AsyncIterator[bytes]:
    yield content


def _line(entry: FileEntry) -> str:
    if entry.kind is Kind.DIRECTORY:
        return f"{entry.path.name}/"
    return f"{entry.path.name}  {bytes_shown(entry.size)}"


def _entry(entry: FileEntry) -> dict[str, object]:
    return {
        "path": entry.path,
        "type": entry.kind.value,
        "size": entry.size,
        "mimeType": entry.mime,
        "modifiedAt": None if entry.modified_at is None else entry.modified_at.isoformat(),
    }


def _distance(name: str, wanted: str) -> tuple[bool, str]:
    """Names that share a beginning or an end with the wanted one come first."""
    short, like = wanted.lower()[:3], name.lower()
    return not (like.startswith(short) or short in like), like
