"""The file service by the paths and field names of the product's first documents: a part of the aliases."""

from datetime import datetime
from typing import Annotated, Final, Literal

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import BaseModel, ConfigDict, Field

from contextbase.errors import InvalidInput
from contextbase.files.model import FileEntry, FileOperation, OperationContext, OperationResult
from contextbase.files.ports import Place
from contextbase.files.slices import MOST_AT_ONCE
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.downloads import Wanted, download_of
from contextbase.interfaces.api.file_views import info_view, tree_view, usage_view
from contextbase.interfaces.api.json_body import JsonBodyRoute
from contextbase.interfaces.api.routes import workspaces
from contextbase.interfaces.api.routes.files import (
    ListedAfter,
    ListLimit,
    NamedPath,
    QueriedPath,
    folder_of,
    workspace_place,
)
from contextbase.interfaces.api.uploaded_file import UploadedFile
from contextbase.wire.commit import ProjectName
from contextbase.wire.files import FolderTreeView, PlaceInfoView, PlaceUsageView

__all__ = ["router"]

router = APIRouter(include_in_schema=False)

_WORKSPACE: Final = "/api/v1/workspace/{workspace}"
_LONGEST_ID: Final = 200

At = Annotated[Place, Depends(workspace_place)]


class AliasedEntry(BaseModel):
    path: str
    name: str
    type: Literal["file", "directory", "symlink"]
    size: int
    modifiedAt: datetime | None  # noqa: N815 - as these documents spell it
    mimeType: str  # noqa: N815


class AliasedList(BaseModel):
    files: list[AliasedEntry]
    nextAfter: str | None  # noqa: N815


class AliasedSlice(BaseModel):
    content: str
    start: int
    total: int
    readLength: int  # noqa: N815
    path: str
    mimeType: str  # noqa: N815
    encoding: Literal["text", "base64"]


class AliasedOperation(BaseModel):
    at: datetime
    action: str
    path: str | None
    previousPath: str | None  # noqa: N815
    operator: str = Field(description="Who did it, or `external`.")
    messageId: str | None  # noqa: N815
    oldHash: str | None  # noqa: N815
    newHash: str | None  # noqa: N815
    size: int


class AliasedHistory(BaseModel):
    history: list[AliasedOperation]
    nextBefore: str | None  # noqa: N815


class AliasedWrite(BaseModel):
    fileRef: str  # noqa: N815
    path: str
    action: str
    previousPath: str | None  # noqa: N815
    oldHash: str | None  # noqa: N815
    newHash: str | None  # noqa: N815
    size: int
    mimeType: str  # noqa: N815


class AliasedSync(BaseModel):
    lastSync: datetime | None  # noqa: N815
    registered: int
    files: list[str]


class _Asked(BaseModel):
    """`operator` is taken and passed over: who acts is decided by the token."""

    model_config = ConfigDict(extra="forbid")

    operator: str | None = Field(default=None, max_length=_LONGEST_ID)
    messageId: str | None = Field(default=None, max_length=_LONGEST_ID)  # noqa: N815

    @property
    def context(self) -> OperationContext:
        return OperationContext(message_id=self.messageId)


class AliasedRename(_Asked):
    path: str = Field(max_length=2048)
    target: str = Field(max_length=2048)


class AliasedFolder(_Asked):
    path: str = Field(max_length=2048)


_json = APIRouter(route_class=JsonBodyRoute)


@router.get(f"{_WORKSPACE}/list")
async def list_files(
    place: At,
    agents: AuthenticatedAgents,
    path: QueriedPath = None,
    after: ListedAfter = "",
    limit: ListLimit = 1000,
) -> AliasedList:
    page = await agents.files.list(place, folder_of(path), after=after, limit=limit)
    return AliasedList(files=[_entry(entry) for entry in page.entries], nextAfter=page.next_after)


@router.get(f"{_WORKSPACE}/tree")
async def folder_tree(place: At) -> FolderTreeView:
    return tree_view("", "", await place.tree())


@router.get(f"{_WORKSPACE}/read/{{path:path}}")
async def read_file(
    place: At,
    path: NamedPath,
    agents: AuthenticatedAgents,
    offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
    length: Annotated[int, Query(ge=1, le=2**53)] = MOST_AT_ONCE,
) -> AliasedSlice:
    file, found = await agents.files.read(place, path, offset=offset, length=length)
    return AliasedSlice(
        content=found.content,
        start=found.start,
        total=found.total,
        readLength=found.read_length,
        path=path,
        mimeType=file.details.entry.mime,
        encoding=found.encoding.value,
    )


@router.get(f"{_WORKSPACE}/history")
async def history(
    place: At,
    path: QueriedPath = None,
    before: Annotated[str | None, Query(max_length=80)] = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> AliasedHistory:
    page = await place.history(folder_of(path), before=before, limit=limit)
    return AliasedHistory(history=[_operation(one) for one in page.operations], nextBefore=page.next_before)


@router.get(f"{_WORKSPACE}/info")
async def info(place: At, agents: AuthenticatedAgents) -> PlaceInfoView:
    return info_view(await agents.files.info(place))


@router.get(f"{_WORKSPACE}/usage")
async def usage(place: At) -> PlaceUsageView:
    return usage_view(await place.usage())


@router.get(f"{_WORKSPACE}/download", response_class=StreamingResponse)
async def download(
    place: At,
    wanted: Wanted,
    path: QueriedPath = None,
    form: Annotated[ArchiveFormat, Query(alias="format")] = ArchiveFormat.ZIP,
) -> Response:
    return await download_of(place, folder_of(path), form, wanted)


@_json.post(f"{_WORKSPACE}/sync")
async def sync(place: At, body: _Asked | None = None) -> AliasedSync:
    found = await place.sync((body or _Asked()).context)
    return AliasedSync(
        lastSync=found.at, registered=len(found.registered), files=[one.path for one in found.registered[:1000]]
    )


@_json.delete(f"{_WORKSPACE}/delete/{{path:path}}")
async def delete(
    place: At,
    path: NamedPath,
    body: _Asked | None = None,
    recursive: Annotated[bool, Query()] = False,
) -> AliasedWrite:
    return _written(place, await place.delete(path, (body or _Asked()).context, recursive=recursive))


@_json.post(f"{_WORKSPACE}/rename")
async def rename(place: At, body: AliasedRename) -> AliasedWrite:
    return _written(place, await place.rename(TreePath(body.path), TreePath(body.target), body.context))


@_json.post(f"{_WORKSPACE}/mkdir")
async def make_folder(place: At, body: AliasedFolder) -> AliasedWrite:
    return _written(place, await place.make_folder(TreePath(body.path), body.context))


@router.post(f"{_WORKSPACE}/upload", status_code=201)
async def upload(request: Request, place: At, agents: AuthenticatedAgents) -> AliasedWrite:
    file = UploadedFile(request)
    await file.open()
    return await _uploaded(place, file, agents)


@router.post("/api/v1/upload", status_code=201)
async def upload_anywhere(
    request: Request,
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    project: Annotated[ProjectName | None, Query()] = None,
) -> AliasedWrite:
    """The form names the workspace, before the file: the file is stored as it arrives."""
    file = UploadedFile(request)
    await file.open()
    workspace = file.fields.get("workspaceId")
    if not workspace or len(workspace) > _LONGEST_ID:
        raise InvalidInput("The form needs the field `workspaceId`, before the file.")
    named = await workspaces.named_workspace(workspace, caller, services, agents, project)
    return await _uploaded(await workspace_place(named, caller, agents), file, agents)


router.include_router(_json)


async def _uploaded(place: Place, file: UploadedFile, agents: AuthenticatedAgents) -> AliasedWrite:
    context = OperationContext(message_id=file.fields.get("messageId"))
    return _written(place, await agents.files.upload(place, file.name, file.content(), context))


def _entry(entry: FileEntry) -> AliasedEntry:
    return AliasedEntry.model_validate(
        {
            "path": entry.path,
            "name": entry.path.name,
            "type": entry.kind.value,
            "size": entry.size,
            "modifiedAt": entry.modified_at,
            "mimeType": entry.mime,
        }
    )


def _operation(operation: FileOperation) -> AliasedOperation:
    is_external = operation.operator_type == "external"
    return AliasedOperation(
        at=operation.at,
        action=operation.action.value,
        path=operation.path,
        previousPath=operation.previous_path,
        operator=operation.operator_type if is_external else operation.principal,
        messageId=operation.message_id,
        oldHash=_text(operation.old_hash),
        newHash=_text(operation.new_hash),
        size=operation.size,
    )


def _written(place: Place, result: OperationResult) -> AliasedWrite:
    return AliasedWrite(
        fileRef=f"{place.reference}:{result.path}",
        path=result.path,
        action=result.action.value,
        previousPath=result.previous_path,
        oldHash=_text(result.old_hash),
        newHash=_text(result.new_hash),
        size=result.size,
        mimeType=result.mime,
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
