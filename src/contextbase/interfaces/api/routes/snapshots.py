"""The way out: checkouts, versions, and their contents."""

import base64
from typing import Annotated, Any, Final
from urllib.parse import quote
from uuid import UUID

from fastapi import APIRouter, Header, Query, Response
from fastapi.responses import StreamingResponse

from contextbase.errors import InvalidInput, PreconditionFailed
from contextbase.ids import NodeId, Seq, TreePath
from contextbase.interfaces.api.answers import as_json, begun
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.etags import ANY, etag_of, etags_in
from contextbase.interfaces.api.problems import problem_response
from contextbase.interfaces.api.project_parameter import ProjectToRead
from contextbase.interfaces.api.ranges import Unsatisfiable, requested_range
from contextbase.reads.model import SnapshotEntry, StoredContent, VersionEntry
from contextbase.reads.service import Reads
from contextbase.wire.commit import MOST_SEQ
from contextbase.wire.tree import (
    CheckoutRequest,
    CheckoutView,
    CommitAuthorView,
    EntryView,
    SideVersionPage,
    SideVersionView,
    VersionPage,
    VersionView,
)

__all__ = ["CHECKOUTS", "CONTENT_ANSWERS", "content_response", "router"]

CHECKOUTS: Final = "/api/v1/checkouts"
_VERSIONS: Final = "/api/v1/versions"

router = APIRouter(tags=["versions"], responses=problem_answers(404))

Path = Annotated[str, Query(max_length=2048)]
Limit = Annotated[int, Query(ge=1, le=1000)]
Number = Annotated[int, Query(ge=1, le=2**31 - 1)]
# Its type is the one that the version has; without one, application/octet-stream.
_BYTES: Final[dict[str, Any]] = {"content": {"*/*": {"schema": {"type": "string", "format": "binary"}}}}
CONTENT_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {"description": "The whole content; ETag is its sha256."} | _BYTES,
    206: {"description": "The range that was asked for."} | _BYTES,
    304: {"description": "If-None-Match names its ETag."},
    **problem_answers(412, 416),
}


@router.post(CHECKOUTS, response_model=CheckoutView, responses=problem_answers(409))
async def checkout(body: CheckoutRequest, caller: AuthenticatedCaller, services: AuthenticatedServices) -> Response:
    """Read paths, or what is below a prefix, in a snapshot: contents or references, with base versions."""
    project_id = await services.projects.id_of(caller, body.project)
    seq = None if body.seq is None else Seq(body.seq)
    folder = TreePath.parse(body.prefix) if body.prefix else None
    if body.paths is not None:
        paths = [TreePath.parse(path) for path in body.paths]
        found = await services.reads.at_paths(
            caller, project_id, paths, seq=seq, epoch=body.epoch, contents=body.contents
        )
    elif body.recursive:
        found = await services.reads.below(
            caller,
            project_id,
            folder,
            seq=seq,
            epoch=body.epoch,
            contents=body.contents,
            after=body.after,
            limit=body.limit,
        )
    else:
        found = await services.reads.folder(
            caller, project_id, folder, seq=seq, epoch=body.epoch, after=body.after, limit=body.limit
        )
    return as_json(
        CheckoutView(
            project_id=project_id,
            epoch=found.epoch,
            seq=found.seq,
            entries=[_entry_view(entry) for entry in found.entries],
            missing=list(found.missing),
            next_after=found.next_after,
        )
    )


@router.get(_VERSIONS)
async def versions(
    *,
    project_id: ProjectToRead,
    path: Path,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    before: Number | None = None,
    limit: Limit = 100,
) -> VersionPage:
    """The versions of the file at a path (or that was there last), newest first, across its renames."""
    entries, next_before = await services.reads.versions(
        caller, project_id, TreePath.parse(path), before=before, limit=limit
    )
    return VersionPage(versions=[_version_view(entry) for entry in entries], next_before=next_before)


@router.get(f"{_VERSIONS}/sides")
async def side_versions(
    *,
    project_id: ProjectToRead,
    path: Path,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    before: UUID | None = None,
    limit: Limit = 100,
) -> SideVersionPage:
    """What lost against the head or waits for a review at a path, newest first."""
    entries, next_before = await services.reads.side_versions(
        caller, project_id, TreePath.parse(path), before=before, limit=limit
    )
    return SideVersionPage(
        side_versions=[SideVersionView.model_validate(entry) for entry in entries], next_before=next_before
    )


@router.get(f"{_VERSIONS}/content", response_class=StreamingResponse, responses=CONTENT_ANSWERS)
async def content(
    *,
    project_id: ProjectToRead,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    path: Path | None = None,
    seq: Annotated[int | None, Query(ge=0, le=MOST_SEQ, description="With path: the snapshot; the head.")] = None,
    node_id: UUID | None = None,
    number: Number | None = None,
    side_version_id: UUID | None = None,
    range_: Annotated[str | None, Header(alias="Range", max_length=200)] = None,
    if_range: Annotated[str | None, Header(max_length=200)] = None,
    if_match: Annotated[str | None, Header(max_length=8000)] = None,
    if_none_match: Annotated[str | None, Header(max_length=8000)] = None,
) -> Response:
    """The bytes of a version: by `path` (and `seq`), by `node_id` and `number`, or by `side_version_id`.

    Streams; takes one byte range. The ETag is the content's sha256: 304 if If-None-Match names it, 412 if If-Match does
    not."""
    if [path is not None, node_id is not None, side_version_id is not None].count(True) != 1 or (
        (node_id is None) != (number is None) or (seq is not None and path is None)
    ):
        raise InvalidInput("Name the content by path (and seq), by node_id and number, or by side_version_id.")
    if path is not None:
        at = None if seq is None else Seq(seq)
        stored = await services.reads.content_at(caller, project_id, TreePath.parse(path), seq=at)
    elif node_id is not None and number is not None:
        stored = await services.reads.content_of_version(caller, project_id, NodeId(node_id), number)
    elif side_version_id is not None:
        stored = await services.reads.content_of_side_version(caller, project_id, side_version_id)
    wanted, known = etags_in(if_match), etags_in(if_none_match)
    if wanted is not None and not wanted & {ANY, str(stored.hash)}:
        raise PreconditionFailed(f"{stored.path} has other content than If-Match asks for: its ETag is {stored.hash}.")
    if wanted is None and known is not None and known & {ANY, str(stored.hash)}:
        return Response(status_code=304, headers={"ETag": etag_of(stored.hash)})
    return await content_response(services.reads, stored, range_, if_range)


async def content_response(
    reads: Reads, stored: StoredContent, range_header: str | None, if_range: str | None
) -> Response:
    etag = etag_of(stored.hash)
    headers = {
        "Accept-Ranges": "bytes",
        "ETag": etag,
        "Content-Disposition": f"attachment; filename*=UTF-8''{quote(stored.path.name, safe='')}",
    }
    try:
        wanted = requested_range(range_header if if_range in (None, etag) else None, stored.size)
    except Unsatisfiable:
        detail = f"The content has {stored.size} bytes; nothing of it is in that range."
        headers["Content-Range"] = f"bytes */{stored.size}"
        return problem_response(416, "invalid_input", detail, headers=headers)
    start, end = (0, None) if wanted is None else wanted
    length = stored.size if wanted is None else wanted[1] - wanted[0]
    headers["Content-Length"] = str(length)
    if wanted is not None:
        headers["Content-Range"] = f"bytes {wanted[0]}-{wanted[1] - 1}/{stored.size}"
    return StreamingResponse(
        await begun(reads.stream(stored, start=start, end=end)),
        status_code=200 if wanted is None else 206,
        headers=headers,
        media_type=stored.mime if stored.mime and stored.mime.isascii() else "application/octet-stream",
    )


def _entry_view(entry: SnapshotEntry) -> EntryView:
    text = encoded = None
    if entry.content is not None:
        try:
            text = entry.content.decode()
        except UnicodeDecodeError:
            encoded = base64.b64encode(entry.content).decode()
    version = entry.version
    return EntryView(
        path=entry.path,
        kind=entry.kind,
        node_id=version.node_id if version else None,
        number=version.number if version else None,
        seq=version.seq if version else None,
        hash=str(version.content_hash) if version and version.content_hash else None,
        size=version.size if version else 0,
        executable=version.executable if version else False,
        mime=version.mime if version else "",
        text=text,
        base64=encoded,
    )


def _version_view(entry: VersionEntry) -> VersionView:
    version = entry.version
    return VersionView(
        node_id=version.node_id,
        number=version.number,
        seq=version.seq,
        path=version.path,
        kind=version.kind,
        hash=None if version.content_hash is None else str(version.content_hash),
        size=version.size,
        executable=version.executable,
        mime=version.mime,
        base_number=version.base_number,
        merged_number=version.merged_number,
        sent_hash=None if version.sent_hash is None else str(version.sent_hash),
        author=CommitAuthorView.model_validate(entry.author),
    )
