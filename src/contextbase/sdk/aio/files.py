"""Files of projects and open workspaces, as a part of the clients: `client.files`."""

from collections.abc import AsyncGenerator, AsyncIterator
from pathlib import Path
from typing import Any, Final, Literal
from urllib.parse import quote

from pydantic import BaseModel

from contextbase.errors import InvalidInput
from contextbase.ids import TreePath
from contextbase.sdk.aio.connection import AsyncConnection
from contextbase.sdk.aio.uploads import AsyncUploadable, check_uploadable, form_of, pieces_of
from contextbase.sdk.arguments import checked
from contextbase.sdk.http import Body
from contextbase.sdk.options import ArchiveFormat
from contextbase.wire.files import (
    FileDetailsView,
    FileHistoryView,
    FileLinkView,
    FileListView,
    FileSliceView,
    FileSyncView,
    FileWriteView,
    FolderCreate,
    FolderTreeView,
    MessagePartsView,
    PlaceInfoView,
    PlaceUsageView,
    RenameRequest,
)

__all__ = ["AsyncFiles"]

_API: Final = "/api/v1"
_LONGEST_SECONDS: Final = 900.0  # a large file is stored, or a workspace compared, before there is an answer


class AsyncFiles:
    """In a project or, with `workspace`, in the folder of an open workspace: by its id, by `agent:NAME` or by `me`.

    A project is read at its head, or `at` a ref such as 12, head~3 or a tag; what is written to it is a commit. What is
    written to a workspace is uncommitted. Raises `InvalidPath` for what is not a plain path in the place.

    `message_id` is the conversation's message that asked for a change; the history keeps it. `if_match`: the ETag (the
    sha256 in quotes) that the file must have, or `*`; else `PreconditionFailed`, and nothing was changed. Changes are
    sent once: an `Unavailable` says nothing about whether they happened."""

    def __init__(self, connection: AsyncConnection) -> None:
        self._connection = connection

    @checked
    async def list(
        self,
        project: str,
        path: str | None = None,
        *,
        workspace: str | None = None,
        at: str | None = None,
        after: str = "",
        limit: int = 1000,
    ) -> FileListView:
        """A folder's files and folders, by name (None: the top). Pass the page's `next_after` for the next page."""
        return await self._read(
            FileListView, project, workspace, "list", at=at, path=path, after=after or None, limit=limit
        )

    @checked
    async def tree(self, project: str, *, workspace: str | None = None, at: str | None = None) -> FolderTreeView:
        """All folders, without files."""
        return await self._read(FolderTreeView, project, workspace, "tree", at=at)

    @checked
    async def read(
        self,
        project: str,
        path: str,
        *,
        offset: int = 0,
        length: int = 5000,
        workspace: str | None = None,
        at: str | None = None,
    ) -> FileSliceView:
        """A part of a file: at most 5,000 characters of text, or bytes of anything else (in base64)."""
        return await self._read(
            FileSliceView, project, workspace, f"read/{_path(path)}", at=at, offset=offset, length=length
        )

    @checked
    async def details(
        self, project: str, path: str, *, workspace: str | None = None, at: str | None = None
    ) -> FileDetailsView:
        """All about one file or folder; `hash` is its ETag."""
        return await self._read(FileDetailsView, project, workspace, f"metadata/{_path(path)}", at=at)

    @checked
    async def parts(
        self, project: str, path: str, *, workspace: str | None = None, at: str | None = None
    ) -> MessagePartsView:
        """A file as a message to a model can have it: text, an image in base64, or a reference to what is too large or
        neither of both."""
        return await self._read(MessagePartsView, project, workspace, f"parts/{_path(path)}", at=at)

    @checked
    async def link(
        self, project: str, path: str, *, workspace: str | None = None, at: str | None = None
    ) -> FileLinkView:
        """A URL by which anybody can download a file from the server's bucket for a short time. Raises `Conflict` if
        the operator does not allow that, or the file is not in a bucket: use `download`."""
        return await self._read(FileLinkView, project, workspace, "link", path=path, at=at)

    @checked
    async def history(
        self,
        project: str,
        path: str | None = None,
        *,
        workspace: str | None = None,
        before: str | None = None,
        limit: int = 100,
    ) -> FileHistoryView:
        """What was done to the files, or to one across its renames, the newest first. Pass the page's `next_before` for
        the next page."""
        return await self._read(FileHistoryView, project, workspace, "history", path=path, before=before, limit=limit)

    @checked
    async def info(self, project: str, *, workspace: str | None = None, at: str | None = None) -> PlaceInfoView:
        """How many files and folders there are, how large, and when they changed last."""
        return await self._read(PlaceInfoView, project, workspace, "info", at=at)

    @checked
    async def usage(self, project: str, *, workspace: str | None = None, at: str | None = None) -> PlaceUsageView:
        """How much room the files take, and how much of it is not committed."""
        return await self._read(PlaceUsageView, project, workspace, "usage", at=at)

    @checked
    async def download(
        self, project: str, path: str, *, start: int = 0, workspace: str | None = None, at: str | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The bytes of a file, in pieces, from `start` on. Close it if you stop early (`contextlib.aclosing`)."""
        headers = {"Range": f"bytes={start}-"} if start else None
        address, query = _asked(project, workspace, "download", path=path, at=at)
        async with self._connection.stream(address, headers=headers, **query) as response:
            async for piece in response.aiter_raw():
                yield piece

    @checked
    async def archive(
        self,
        project: str,
        path: str | None = None,
        *,
        form: ArchiveFormat = "zip",
        workspace: str | None = None,
        at: str | None = None,
    ) -> AsyncGenerator[bytes, None]:
        """A folder (None: the top) with all in it, as an archive, in pieces."""
        address, query = _asked(project, workspace, "download", path=path, at=at, format=form)
        async with self._connection.stream(address, **query) as response:
            async for piece in response.aiter_raw():
                yield piece

    async def write(
        self,
        project: str,
        path: str,
        content: AsyncUploadable,
        *,
        workspace: str | None = None,
        mime: str | None = None,
        if_match: str | None = None,
        if_none_match: Literal["*"] | None = None,
        message_id: str | None = None,
    ) -> FileWriteView:
        """Make a file, or replace what it holds. With `if_none_match="*"` there must be none."""
        check_uploadable(content)
        asked = _asked(project, workspace, f"write/{_path(path)}", mime=mime)
        headers = _headers(if_match=if_match, if_none_match=if_none_match, message_id=message_id)
        return await self._changed("PUT", asked, pieces_of(content), headers)

    async def upload(
        self,
        project: str,
        content: AsyncUploadable,
        *,
        name: str | None = None,
        folder: str | None = None,
        workspace: str | None = None,
        message_id: str | None = None,
    ) -> FileWriteView:
        """A new file in a folder (None: `upload`), under a name that no other file has: `data.csv` becomes
        `data (1).csv`. A `Path` has a `name` of its own."""
        check_uploadable(content)
        if name is None:
            if not isinstance(content, Path):
                raise InvalidInput("upload() needs `name`: the file's name.")
            name = content.name
        form, kind = form_of(name, content)
        asked = _asked(project, workspace, "upload", path=folder)
        return await self._changed("POST", asked, form, _headers(message_id=message_id) | {"Content-Type": kind})

    @checked
    async def delete(
        self,
        project: str,
        path: str,
        *,
        recursive: bool = False,
        workspace: str | None = None,
        if_match: str | None = None,
        message_id: str | None = None,
    ) -> FileWriteView:
        """Remove a file or an empty folder, or (`recursive`) a folder with all in it; `Conflict` for a folder that is
        not empty otherwise."""
        asked = _asked(project, workspace, f"delete/{_path(path)}", recursive=recursive)
        return await self._changed("DELETE", asked, None, _headers(if_match=if_match, message_id=message_id))

    @checked
    async def rename(
        self,
        project: str,
        path: str,
        target: str,
        *,
        workspace: str | None = None,
        if_match: str | None = None,
        message_id: str | None = None,
    ) -> FileWriteView:
        """Move a file, or a folder with all in it; `Conflict` if something stands at the target."""
        body = RenameRequest(path=path, target=target)
        headers = _headers(if_match=if_match, message_id=message_id)
        return await self._changed("POST", _asked(project, workspace, "rename"), body, headers)

    @checked
    async def make_folder(
        self, project: str, path: str, *, workspace: str | None = None, message_id: str | None = None
    ) -> FileWriteView:
        """Make a folder, with those it lies in; `unchanged` if it is there."""
        body = FolderCreate(path=path)
        return await self._changed("POST", _asked(project, workspace, "mkdir"), body, _headers(message_id=message_id))

    @checked
    async def sync(self, project: str, *, workspace: str | None = None, message_id: str | None = None) -> FileSyncView:
        """Register what programs changed in a workspace's folder since the last time."""
        address, query = _asked(project, workspace, "sync")
        headers = _headers(message_id=message_id)
        return await self._connection.call(
            FileSyncView, "POST", address, headers=headers, read_seconds=_LONGEST_SECONDS, **query
        )

    async def _read(self, answer: type[Body], project: str, workspace: str | None, what: str, **query: Any) -> Body:
        address, asked = _asked(project, workspace, what, **query)
        return await self._connection.read(answer, address, read_seconds=_LONGEST_SECONDS, **asked)

    async def _changed(
        self,
        method: str,
        asked: tuple[str, dict[str, Any]],
        body: BaseModel | AsyncIterator[bytes] | None,
        headers: dict[str, str],
    ) -> FileWriteView:
        address, query = asked
        return await self._connection.call(
            FileWriteView, method, address, body, headers=headers, read_seconds=_LONGEST_SECONDS, **query
        )


def _asked(project: str, workspace: str | None, what: str, **query: Any) -> tuple[str, dict[str, Any]]:
    """An address, and what is asked there. That of a workspace does not name its project."""
    if workspace is None:
        return f"{_API}/files/{quote(project, safe='')}/{what}", query
    if query.get("at") is not None:
        raise InvalidInput("A workspace has no snapshots to read: leave `at` out.")
    return f"{_API}/workspaces/{quote(workspace, safe=':')}/{what}", query | {"project": project}


def _path(path: str) -> str:
    """As a part of an address. Checked here, because what is on the way to the server may tidy it up."""
    return quote(TreePath(path), safe="/")


def _headers(
    *, if_match: str | None = None, if_none_match: str | None = None, message_id: str | None = None
) -> dict[str, str]:
    asked = {"If-Match": if_match, "If-None-Match": if_none_match, "X-Message-Id": message_id}
    return {name: value for name, value in asked.items() if value is not None}
