"""Answers that are the content of a file, also in parts, or a folder as an archive."""

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import Depends, Header, Response
from fastapi.responses import StreamingResponse
from starlette.requests import ClientDisconnect
from starlette.types import Receive, Scope, Send

from contextbase.errors import PreconditionFailed
from contextbase.files.ports import OpenedFile, Place
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.ids import TreePath
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.etags import ANY, etag_of, etags_in
from contextbase.interfaces.api.problems import problem_response
from contextbase.interfaces.api.ranges import Unsatisfiable, requested_range
from contextbase.interfaces.api.zero_copy import ZERO_COPY
from contextbase.storage.model import Kind

__all__ = ["DOWNLOADS", "Wanted", "download_of"]

_ARCHIVES: Final = {
    ArchiveFormat.TAR: "application/x-tar",
    ArchiveFormat.TAR_GZ: "application/gzip",
    ArchiveFormat.ZIP: "application/zip",
}
_BYTES: Final[dict[str, Any]] = {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
DOWNLOADS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The content, or an archive of a folder; a file's ETag is its sha256."} | _BYTES,
    206: {"description": "The range that was asked for."} | _BYTES,
    304: {"description": "If-None-Match names its ETag."},
    **problem_answers(412, 416),
}
"""For `responses` of a route that answers with `download_of`."""


@dataclass(frozen=True, kw_only=True, slots=True)
class _Wanted:
    """The headers that say which part is wanted, and of which content."""

    range: str | None
    if_range: str | None
    if_match: str | None
    if_none_match: str | None


async def _wanted(
    range_: Annotated[str | None, Header(alias="Range", max_length=200)] = None,
    if_range: Annotated[str | None, Header(max_length=200)] = None,
    if_match: Annotated[str | None, Header(max_length=8000)] = None,
    if_none_match: Annotated[str | None, Header(max_length=8000)] = None,
) -> _Wanted:
    return _Wanted(range=range_, if_range=if_range, if_match=if_match, if_none_match=if_none_match)


Wanted = Annotated[_Wanted, Depends(_wanted)]


class _FileResponse(StreamingResponse):
    """The content of a file: in pieces, or (`sent`) as a part of an open file, where the server can send such."""

    def __init__(
        self, pieces: AsyncIterator[bytes], *, sent: tuple[int, int, int] | None, kept: AsyncExitStack, **options: Any
    ) -> None:
        super().__init__(pieces, **options)
        self._sent = sent
        self._kept = kept

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if self._sent is None or not self._sent[2] or ZERO_COPY not in scope.get("extensions", {}):
            await super().__call__(scope, receive, send)
            return
        file, start, count = self._sent
        async with self._kept:
            await send({"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers})
            try:
                await send({"type": ZERO_COPY, "file": file, "offset": start, "count": count, "more_body": True})
            except OSError:
                raise ClientDisconnect from None
            await send({"type": "http.response.body", "body": b"", "more_body": False})


async def download_of(place: Place, path: TreePath | None, form: ArchiveFormat, wanted: Wanted) -> Response:
    """A file, or a folder (None: the top) as an archive of that form."""
    if path is None or (await place.details(path)).entry.kind is Kind.DIRECTORY:
        return await _archive(place, path, form)
    async with AsyncExitStack() as stack:
        opened = await stack.enter_async_context(place.opened(path))
        etag = "" if opened.details.hash is None else etag_of(opened.details.hash)
        asked, known = etags_in(wanted.if_match), etags_in(wanted.if_none_match)
        if asked is not None and not asked & {ANY, str(opened.details.hash)}:
            raise PreconditionFailed(f"{path} has other content than If-Match asks for: its ETag is {etag}.")
        if asked is None and known is not None and known & {ANY, str(opened.details.hash)}:
            return Response(status_code=304, headers={"ETag": etag})
        return await _content(opened, etag, wanted.range if wanted.if_range in (None, etag) else None, stack)


async def _archive(place: Place, path: TreePath | None, form: ArchiveFormat) -> Response:
    stack = AsyncExitStack()
    pieces = await stack.enter_async_context(place.archive(path, form))

    async def all_pieces() -> AsyncIterator[bytes]:
        async with stack:
            async for piece in pieces:
                if piece:
                    yield piece

    name = quote(f"{path.name if path else place.reference}.{form}", safe="")
    headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return StreamingResponse(all_pieces(), media_type=_ARCHIVES[form], headers=headers)


async def _content(opened: OpenedFile, etag: str, range_header: str | None, stack: AsyncExitStack) -> Response:
    """What keeps the file open goes from the stack to the answer."""
    path, size = opened.details.entry.path, opened.content.size
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(path.name, safe='')}",
    }
    try:
        part = requested_range(range_header, size)
    except Unsatisfiable:
        headers["Content-Range"] = f"bytes */{size}"
        detail = f"The content has {size} bytes; nothing of it is in that range."
        return problem_response(416, "invalid_input", detail, headers=headers)
    start, end = part or (0, size)
    headers["Content-Length"] = str(end - start)
    if part is not None:
        headers["Content-Range"] = f"bytes {start}-{end - 1}/{size}"
    pieces = opened.content.stream(start, end)
    stack.push_async_callback(pieces.aclose)
    first = await anext(pieces, b"")  # what is missing is an error, not half an answer
    kept = stack.pop_all()

    async def all_pieces() -> AsyncIterator[bytes]:
        async with kept:
            yield first
            async for piece in pieces:
                yield piece

    mime = opened.details.entry.mime
    return _FileResponse(
        all_pieces(),
        sent=None if opened.content.descriptor is None else (opened.content.descriptor, start, end - start),
        kept=kept,
        status_code=200 if part is None else 206,
        headers=headers,
        media_type=mime if mime and mime.isascii() else "application/octet-stream",
    )
