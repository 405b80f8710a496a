"""The way in: commits and uploads."""

import base64
import binascii
import re
from typing import Annotated, Any, Final

from fastapi import APIRouter, Header, Query, Request, Response

from contextbase.errors import BlobCorrupted, InvalidInput, PreconditionFailed
from contextbase.gate.answers import conflict_to_dict
from contextbase.gate.model import (
    ChangeAction,
    ChangeAnswer,
    CommitAnswer,
    CommitRequest,
    Content,
    ContentKind,
    Expectation,
    RequestedChange,
)
from contextbase.identity.model import Action
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.interfaces.api.answers import as_json
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.etags import ANY, etags_in
from contextbase.interfaces.api.project_parameter import ProjectToWrite
from contextbase.wire.commit import (
    CONTENT_HASH,
    ChangeBody,
    ChangeView,
    CommitCreate,
    CommitView,
    ConflictView,
    UploadView,
)

__all__ = ["COMMITS", "RAW_BODY", "UPLOADS", "bytes_of", "change_view", "content_of", "expectation", "router"]

COMMITS: Final = "/api/v1/commits"
UPLOADS: Final = "/api/v1/uploads"
RAW_BODY: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}

router = APIRouter(tags=["commits"], responses=problem_answers(404, 409, 429))


@router.post(COMMITS, response_model=CommitView, responses=problem_answers(412))
async def commit(
    *,
    body: CommitCreate,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    idempotency_key: Annotated[str | None, Header(max_length=200)] = None,
    if_match: Annotated[str | None, Header(max_length=8000, description="ETags, or *; for a single change.")] = None,
    if_none_match: Annotated[str | None, Header(max_length=8000, description="Only *: the file must be new.")] = None,
) -> Response:
    """Settle changes against the head: each is written, merged, unchanged, superseded, in review or refused.

    When this answers, all but the refused are durably in the project. Needs 'write'. With If-Match or If-None-Match
    (which need 'read' as well), nothing is changed unless the file at the path is what they ask for: 412."""
    if body.key is not None and idempotency_key not in (None, body.key):
        raise InvalidInput("The header Idempotency-Key and the body's key differ; send one of them.")
    project_id = await services.projects.id_of(caller, body.project, action=Action.WRITE)
    request = CommitRequest(
        project_id=project_id,
        changes=tuple(_change(change, body.base_seq) for change in body.changes),
        message=body.message,
        epoch=body.epoch,
        key=body.key or idempotency_key,
        atomic=body.atomic,
        run=body.run,
        lease=body.lease,
        expects=expectation(if_match, if_none_match),
    )
    answer = await services.gate.commit(caller, request)
    if request.expects is not None and answer.changes[0].code == PreconditionFailed.code:
        raise PreconditionFailed(answer.changes[0].reason or "")
    return as_json(_view(answer))


@router.post(UPLOADS, status_code=201, openapi_extra=RAW_BODY)
async def upload(
    request: Request,
    project_id: ProjectToWrite,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    hash: Annotated[  # noqa: A002 - the parameter's name
        str | None, Query(pattern=CONTENT_HASH, description="The sha256 it must have; else nothing is stored.")
    ] = None,
) -> UploadView:
    """Store the request's body, to be named by its hash in a commit. Streams; needs 'write'."""
    expected = None if hash is None else ContentHash.parse(hash)
    try:
        blob = await services.gate.upload(caller, project_id, request.stream(), expected=expected)
    except BlobCorrupted:
        raise InvalidInput(f"What arrived does not hash to {hash}; nothing was stored. Send it again.") from None
    return UploadView(hash=str(blob.hash), size=blob.size)


def expectation(if_match: str | None, if_none_match: str | None) -> Expectation | None:
    wanted, unwanted = etags_in(if_match), etags_in(if_none_match)
    if unwanted is not None:
        if wanted is not None or unwanted != {ANY}:
            raise InvalidInput("A commit takes If-None-Match: * or If-Match, one of them.")
        return Expectation(is_none=True)
    if wanted is None:
        return None
    hashes = frozenset(ContentHash.parse(etag) for etag in wanted if re.fullmatch(CONTENT_HASH, etag))
    return Expectation(contents=hashes, is_any=wanted == {ANY})


def _change(body: ChangeBody, base_seq: int | None) -> RequestedChange:
    base = body.base if body.base is not None else base_seq if body.base_version is None else 0
    if base is None:
        raise InvalidInput(f"The change of {body.path[:120]!r} names no base.")
    return RequestedChange(
        action=ChangeAction(body.action),
        path=TreePath.parse(body.path),
        target=None if body.target is None else TreePath.parse(body.target),
        base=Seq(base),
        content=content_of(text=body.text, encoded=body.base64, name=body.hash, path=body.path),
        kind=ContentKind(body.kind),
        executable=body.executable,
        mime=body.mime,
        base_version=body.base_version,
    )


def content_of(*, text: str | None, encoded: str | None, name: str | None, path: str) -> Content | None:
    """What a body brings for a path: as text, as base64, or by its name."""
    if name is not None:
        return Content(hash=ContentHash.parse(name), size=0)  # the gate knows how long it is
    if text is not None:
        inline = bytes_of(text, path)
    elif encoded is not None:
        try:
            inline = base64.b64decode(encoded, validate=True)
        except (binascii.Error, ValueError):
            raise InvalidInput(f"The content of {path[:120]!r} is not base64.") from None
    else:
        return None
    return Content(hash=ContentHash.of(inline), size=len(inline), inline=inline)


def bytes_of(text: str, path: str) -> bytes:
    """JSON can hold half of a character; a file in UTF-8 cannot."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        raise InvalidInput(f"The text of {path[:120]!r} is not Unicode: it has half of a surrogate pair.") from None


def _view(answer: CommitAnswer) -> CommitView:
    return CommitView(
        seq=answer.seq, committed=answer.committed, changes=[change_view(change) for change in answer.changes]
    )


def change_view(change: ChangeAnswer) -> ChangeView:
    return ChangeView(
        path=change.path,
        status=change.status.value,
        result_path=change.result_path,
        node_id=change.node_id,
        number=change.number,
        strategy=change.strategy,
        notes=list(change.notes),
        side_version_id=change.side_version_id,
        review_id=change.review_id,
        conflicts=[ConflictView.model_validate(conflict_to_dict(conflict)) for conflict in change.conflicts],
        code=change.code,
        reason=change.reason,
    )
