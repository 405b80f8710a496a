"""The log, for everyone who may read; the audit trail, for administrators."""

from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Query
from fastapi.responses import StreamingResponse

from contextbase.audit.model import WayIn
from contextbase.identity.model import Action, PrincipalName
from contextbase.ids import NodeId, Seq, TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.project_parameter import ProjectToAdminister, ProjectToRead
from contextbase.reads.audit_search import AuditQueryFilter, AuditRecord
from contextbase.wire.commit import MOST_SEQ
from contextbase.wire.history import (
    AuditPageView,
    AuditQuery,
    AuditRecordView,
    LogEntryView,
    LogPageView,
)

__all__ = ["router", "system_router"]

router = APIRouter(prefix="/api/v1", tags=["history"], responses=problem_answers(404))

system_router = APIRouter(prefix="/api/v1/system", tags=["system"])

JSON_LINES: Final = "application/jsonl"
_LINES: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "One row a line, oldest first.",
        "content": {JSON_LINES: {"schema": {"type": "string"}}},
    }
}

Before = Annotated[int | None, Query(ge=1, le=MOST_SEQ)]
Limit = Annotated[int, Query(ge=1, le=1000)]
PathQuery = Annotated[str | None, Query(max_length=2048)]
PrincipalQuery = Annotated[str | None, Query(max_length=120, description="Such as agent:indexer, or indexer.")]


@router.get("/commits")
async def log(
    *,
    project_id: ProjectToRead,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    path: PathQuery = None,
    principal: PrincipalQuery = None,
    run: Annotated[str | None, Query(max_length=200, pattern=r"^[^\x00]*$")] = None,
    before: Before = None,
    limit: Limit = 50,
) -> LogPageView:
    """Commits, newest first: of the project, of the file at a path, of a principal or of a run."""
    page = await services.history.log(
        caller,
        project_id,
        path=None if path is None else TreePath.parse(path),
        principal=None if principal is None else PrincipalName.parse(principal),
        run=run,
        before=None if before is None else Seq(before),
        limit=limit,
    )
    return LogPageView(
        commits=[LogEntryView.model_validate(entry) for entry in page.entries], next_before=page.next_before
    )


async def audit_filter(query: Annotated[AuditQuery, Depends()]) -> AuditQueryFilter:
    return AuditQueryFilter(
        principal=None if query.principal is None else PrincipalName.parse(query.principal),
        action=query.action,
        path=None if query.path is None else TreePath.parse(query.path),
        since=query.since,
        until=query.until,
        first_seq=None if query.first_seq is None else Seq(query.first_seq),
        last_seq=None if query.last_seq is None else Seq(query.last_seq),
        node_id=None if query.node_id is None else NodeId(query.node_id),
        way_in=None if query.operator_type is None else WayIn(query.operator_type),
    )


Wanted = Annotated[AuditQueryFilter, Depends(audit_filter)]


@router.get("/audit")
async def audit(
    *,
    project_id: ProjectToAdminister,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    wanted: Wanted,
    before: Before = None,
    limit: Limit = 100,
) -> AuditPageView:
    """The project's audit trail, newest first. Needs 'admin'."""
    page = await services.trail.page(caller, project_id, wanted, before=before, limit=limit)
    return AuditPageView.model_validate(page)


@router.get("/audit/export", response_class=StreamingResponse, responses=_LINES)
async def export_audit(
    project_id: ProjectToAdminister, caller: AuthenticatedCaller, services: AuthenticatedServices, wanted: Wanted
) -> StreamingResponse:
    """The whole trail, or what matches, as JSON lines, oldest first. Needs 'admin'."""
    return _json_lines(services.trail.export(caller, project_id, wanted))


@system_router.get("/audit")
async def system_audit(
    *,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    wanted: Wanted,
    before: Before = None,
    limit: Limit = 100,
) -> AuditPageView:
    """The system's own audit trail, newest first: tokens, groups, restores. Needs 'admin' of all projects."""
    page = await services.trail.page(caller, None, wanted, before=before, limit=limit)
    return AuditPageView.model_validate(page)


@system_router.get("/audit/export", response_class=StreamingResponse, responses=_LINES)
async def export_system_audit(
    caller: AuthenticatedCaller, services: AuthenticatedServices, wanted: Wanted
) -> StreamingResponse:
    """The system's whole trail, or what matches, as JSON lines, oldest first. Needs 'admin' of all projects."""
    caller.require(Action.ADMIN)
    return _json_lines(services.trail.export(caller, None, wanted))


def _json_lines(portions: AsyncGenerator[list[AuditRecord], None]) -> StreamingResponse:
    async def lines() -> AsyncIterator[bytes]:
        async with aclosing(portions):
            async for records in portions:
                yield b"".join(
                    AuditRecordView.model_validate(record).model_dump_json().encode() + b"\n" for record in records
                )

    return StreamingResponse(lines(), media_type=JSON_LINES)
