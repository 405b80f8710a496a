"""Files of apps for people: knowledge, templates, and a user's own."""

from typing import Annotated

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.responses import StreamingResponse

from contextbase.errors import error_of_code
from contextbase.gate.model import ChangeAction, ChangeStatus, CommitRequest, Content, RequestedChange
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.routes.apps import Apps, NamedApp
from contextbase.interfaces.api.routes.commits import RAW_BODY, expectation
from contextbase.interfaces.api.routes.files import NamedPath
from contextbase.interfaces.api.routes.snapshots import CONTENT_ANSWERS, content_response
from contextbase.wire.app import AppFileChanged, AppFileList, AppFileView

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/apps/{app}/files", tags=["apps"], responses=problem_answers(404, 409))

IfMatch = Annotated[str | None, Header(max_length=8000, description="ETags, or *.")]
IfNoneMatch = Annotated[str | None, Header(max_length=8000, description="Only *: the file must be new.")]


@router.get("")
async def list_app_files(
    *,
    app: NamedApp,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    catalog: Apps,
    prefix: Annotated[str, Query(description="kb, registry, project/default/kb, …", min_length=1, max_length=2048)],
    after: Annotated[str, Query(max_length=2048, pattern=r"^[^\x00]*$")] = "",
    limit: Annotated[int, Query(ge=1, le=1000)] = 1000,
) -> AppFileList:
    """What is below a folder of the app: its knowledge for whoever uses it, its templates for whoever manages it, and
    your own files and sessions."""
    folder = TreePath.parse(prefix)
    opened = await catalog.files.opened(caller, app, folder, edit=False)
    found = await services.reads.below(
        opened.caller, opened.project_id, folder, seq=None, contents=False, after=after, limit=limit
    )
    views = [
        AppFileView(
            path=entry.path,
            kind=entry.kind,
            size=0 if entry.version is None else entry.version.size,
            hash=None
            if entry.version is None or entry.version.content_hash is None
            else str(entry.version.content_hash),
        )
        for entry in found.entries
    ]
    return AppFileList(files=views, next_after=found.next_after)


@router.get("/{path:path}", response_class=StreamingResponse, responses=CONTENT_ANSWERS)
async def read_app_file(
    app: NamedApp, path: NamedPath, caller: AuthenticatedCaller, services: AuthenticatedServices, catalog: Apps
) -> Response:
    """The bytes of a file; its ETag is their sha256."""
    opened = await catalog.files.opened(caller, app, path, edit=False)
    stored = await services.reads.content_at(opened.caller, opened.project_id, path, seq=None)
    return await content_response(services.reads, stored, None, None)


@router.put("/{path:path}", openapi_extra=RAW_BODY, responses=problem_answers(412))
async def write_app_file(
    *,
    app: NamedApp,
    path: NamedPath,
    request: Request,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    catalog: Apps,
    if_match: IfMatch = None,
    if_none_match: IfNoneMatch = None,
) -> AppFileChanged:
    """Replace a file, or make it. Needs manage_kb for knowledge, edit_files for the rest."""
    opened = await catalog.files.opened(caller, app, path, edit=True)
    blob = await services.gate.upload(opened.caller, opened.project_id, request.stream())
    head = await services.reads.at_paths(opened.caller, opened.project_id, [path], seq=None, contents=False)
    change = RequestedChange(
        action=ChangeAction.WRITE, path=path, base=head.seq, content=Content(hash=blob.hash, size=blob.size)
    )
    commit = CommitRequest(
        project_id=opened.project_id, changes=(change,), expects=expectation(if_match, if_none_match)
    )
    return await _committed(services, opened.caller, commit)


@router.delete("/{path:path}", responses=problem_answers(412))
async def delete_app_file(
    *,
    app: NamedApp,
    path: NamedPath,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    catalog: Apps,
    if_match: IfMatch = None,
) -> AppFileChanged:
    """Delete a file; its history stays."""
    opened = await catalog.files.opened(caller, app, path, edit=True)
    head = await services.reads.at_paths(opened.caller, opened.project_id, [path], seq=None, contents=False)
    change = RequestedChange(action=ChangeAction.DELETE, path=path, base=head.seq)
    commit = CommitRequest(project_id=opened.project_id, changes=(change,), expects=expectation(if_match, None))
    return await _committed(services, opened.caller, commit)


async def _committed(
    services: AuthenticatedServices, caller: AuthenticatedCaller, request: CommitRequest
) -> AppFileChanged:
    answer = await services.gate.commit(caller, request)
    [change] = answer.changes
    if change.status is ChangeStatus.REFUSED:
        raise error_of_code(change.code or "forbidden", change.reason or "The change was refused.")
    content = request.changes[0].content
    return AppFileChanged(
        path=change.path,
        status=change.status,
        seq=answer.seq,
        hash=None if content is None else str(content.hash),
    )
