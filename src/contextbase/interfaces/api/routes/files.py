"""Files of projects and open workspaces: the same routes for both."""

from collections.abc import Callable
from typing import Annotated, Any, Final

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.responses import StreamingResponse

from contextbase.files.model import OperationContext, OperationResult
from contextbase.files.ports import Place
from contextbase.files.service import UPLOAD_FOLDER
from contextbase.files.slices import MOST_AT_ONCE
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.ids import TreePath
from contextbase.interfaces.api.answers import as_json
from contextbase.interfaces.api.authentication import AuthenticatedAgents, AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.interfaces.api.downloads import DOWNLOADS, Wanted, download_of
from contextbase.interfaces.api.etags import etag_of
from contextbase.interfaces.api.file_views import (
    details_view,
    entry_view,
    info_view,
    link_view,
    operation_view,
    parts_view,
    result_view,
    tree_view,
    usage_view,
)
from contextbase.interfaces.api.routes.commits import expectation
from contextbase.interfaces.api.routes.workspaces import Named
from contextbase.interfaces.api.uploaded_file import UploadedFile
from contextbase.wire.commit import ProjectName
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
from contextbase.wire.snapshot import LONGEST_REF

__all__ = [
    "STREAMED",
    "ListLimit",
    "ListedAfter",
    "NamedPath",
    "QueriedPath",
    "folder_of",
    "project_router",
    "workspace_place",
    "workspace_router",
]

STREAMED: Final = r"/api/v1/(((files|workspaces?)/[^/]+/)?upload|(files|workspaces)/[^/]+/write/.*)"
"""The paths that take bodies of any length."""

_MOST_TOLD: Final = 1000
_LONGEST_PATH: Final = 3072
_FORM: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {
            "multipart/form-data": {
                "schema": {
                    "type": "object",
                    "required": ["file"],
                    "properties": {"file": {"type": "string", "format": "binary"}},
                }
            }
        },
    }
}
_RAW: Final[dict[str, Any]] = {
    "requestBody": {
        "required": True,
        "content": {"application/octet-stream": {"schema": {"type": "string", "format": "binary"}}},
    }
}


async def workspace_place(named: Named, caller: AuthenticatedCaller, agents: AuthenticatedAgents) -> Place:
    return agents.files.workspace(caller, named)


async def _project(
    project: Annotated[ProjectName, Path()],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    agents: AuthenticatedAgents,
    at: Annotated[
        str | None, Query(max_length=LONGEST_REF, description="A snapshot to read; left out: the head.")
    ] = None,
) -> Place:
    project_id = await services.projects.id_of(caller, project)
    seq = None if at is None else await services.snapshots.find(caller, project_id, at)
    return agents.files.project(caller, project_id, seq)


async def _context(
    x_message_id: Annotated[
        str | None, Header(max_length=200, description="The message of a conversation that asked for this.")
    ] = None,
    if_match: Annotated[str | None, Header(max_length=8000, description="ETags, or *.")] = None,
    if_none_match: Annotated[str | None, Header(max_length=8000, description="Only *: the file is new.")] = None,
) -> OperationContext:
    return OperationContext(message_id=x_message_id, expects=expectation(if_match, if_none_match))


async def _message(
    x_message_id: Annotated[
        str | None, Header(max_length=200, description="The message of a conversation that asked for this.")
    ] = None,
) -> OperationContext:
    return OperationContext(message_id=x_message_id)


async def _named_path(path: Annotated[str, Path(max_length=_LONGEST_PATH)]) -> TreePath:
    return TreePath(path)


Context = Annotated[OperationContext, Depends(_context)]
Message = Annotated[OperationContext, Depends(_message)]
NamedPath = Annotated[TreePath, Depends(_named_path)]
QueriedPath = Annotated[str | None, Query(max_length=_LONGEST_PATH, description="Left out: the top folder.")]
ListedAfter = Annotated[str, Query(max_length=1024, pattern=r"^[^\x00]*$")]
ListLimit = Annotated[int, Query(ge=1, le=1000)]


def folder_of(path: str | None) -> TreePath | None:
    return TreePath(path) if path else None


def _router(prefix: str, tag: str, opened: Callable[..., Any]) -> APIRouter:
    router = APIRouter(prefix=prefix, tags=[tag], responses=problem_answers(404, 409, 421))
    At = Annotated[Place, Depends(opened)]  # noqa: N806 - a type

    @router.get("/list")
    async def list_files(
        place: At,
        agents: AuthenticatedAgents,
        path: QueriedPath = None,
        after: ListedAfter = "",
        limit: ListLimit = 1000,
    ) -> Response:
        """A folder's files and folders, by name."""
        page = await agents.files.list(place, folder_of(path), after=after, limit=limit)
        return as_json(FileListView(entries=[entry_view(entry) for entry in page.entries], next_after=page.next_after))

    @router.get("/tree", response_model=FolderTreeView)
    async def folder_tree(place: At) -> Response:
        """All folders, without files."""
        return as_json(tree_view("", "", await place.tree()))

    @router.get("/read/{path:path}", response_model=FileSliceView)
    async def read_file(
        place: At,
        path: NamedPath,
        agents: AuthenticatedAgents,
        offset: Annotated[int, Query(ge=0, le=2**53)] = 0,
        length: Annotated[int, Query(ge=1, le=2**53, description=f"At most {MOST_AT_ONCE} are given.")] = MOST_AT_ONCE,
    ) -> Response:
        """A part of a file, by characters of text or by bytes."""
        file, found = await agents.files.read(place, path, offset=offset, length=length)
        view = FileSliceView(
            content=found.content,
            encoding=found.encoding,
            charset=found.charset,
            start=found.start,
            total=found.total,
            readLength=found.read_length,
            path=path,
            mime=file.details.entry.mime,
            hash=None if file.details.hash is None else str(file.details.hash),
        )
        return Response(view.model_dump_json(by_alias=True), media_type="application/json")

    @router.get("/metadata/{path:path}")
    async def metadata(place: At, path: NamedPath) -> FileDetailsView:
        """All about one file or folder."""
        return details_view(await place.details(path))

    @router.get("/parts/{path:path}")
    async def parts(place: At, path: NamedPath, agents: AuthenticatedAgents) -> MessagePartsView:
        """A file as a message to a model can have it: text, an image, or a reference to what is too large or binary."""
        return parts_view(place.reference, *await agents.files.message_part(place, path))

    @router.get("/history")
    async def history(
        place: At,
        path: Annotated[str | None, Query(max_length=_LONGEST_PATH, description="One file, across renames.")] = None,
        before: Annotated[str | None, Query(max_length=80)] = None,
        limit: Annotated[int, Query(ge=1, le=1000)] = 100,
    ) -> FileHistoryView:
        """What was done to the files, the newest first."""
        page = await place.history(folder_of(path), before=before, limit=limit)
        return FileHistoryView(
            operations=[operation_view(one) for one in page.operations], next_before=page.next_before
        )

    @router.get("/info")
    async def info(place: At, agents: AuthenticatedAgents) -> PlaceInfoView:
        """How many files and folders there are, how large, and when they changed last."""
        return info_view(await agents.files.info(place))

    @router.get("/usage")
    async def usage(place: At) -> PlaceUsageView:
        """How much room the files take."""
        return usage_view(await place.usage())

    @router.get("/download", response_class=StreamingResponse, responses=DOWNLOADS)
    async def download(
        place: At,
        wanted: Wanted,
        path: QueriedPath = None,
        form: Annotated[ArchiveFormat, Query(alias="format", description="Of a folder.")] = ArchiveFormat.ZIP,
    ) -> Response:
        """A file, also in parts, or a folder as an archive."""
        return await download_of(place, folder_of(path), form, wanted)

    @router.get("/link")
    async def link(
        place: At, agents: AuthenticatedAgents, path: Annotated[str, Query(max_length=_LONGEST_PATH)]
    ) -> FileLinkView:
        """A URL that downloads a file from the bucket for a short time, if the operator allows such links."""
        return link_view(*await agents.files.link(place, TreePath(path)))

    @router.post("/sync")
    async def sync(place: At, context: Message) -> FileSyncView:
        """Register what programs changed in the workspace's folder since the last time. Needs 'write'."""
        found = await place.sync(context)
        told = [result_view(place.reference, one) for one in found.registered[:_MOST_TOLD]]
        return FileSyncView(at=found.at, registered=len(found.registered), operations=told)

    @router.put("/write/{path:path}", responses=problem_answers(412), openapi_extra=_RAW)
    async def write(
        *,
        request: Request,
        response: Response,
        place: At,
        path: NamedPath,
        context: Context,
        mime: Annotated[str, Query(max_length=200, pattern=r"^[\x20-\x7e]*$")] = "",
    ) -> FileWriteView:
        """Make a file, or replace what it holds, by the request's body. Streams; needs 'write'."""
        return _told(place, response, await place.write(path, request.stream(), context, mime=mime))

    @router.post("/upload", status_code=201, openapi_extra=_FORM)
    async def upload(
        *,
        request: Request,
        response: Response,
        place: At,
        context: Message,
        agents: AuthenticatedAgents,
        path: Annotated[str, Query(max_length=_LONGEST_PATH, description="The folder.")] = str(UPLOAD_FOLDER),
    ) -> FileWriteView:
        """A new file from a form. It never takes another's place: `data.csv` becomes `data (1).csv`. Needs 'write'."""
        file = UploadedFile(request)
        await file.open()
        result = await agents.files.upload(place, file.name, file.content(), context, folder=folder_of(path))
        return _told(place, response, result)

    @router.delete("/delete/{path:path}", responses=problem_answers(412))
    async def delete(
        response: Response,
        place: At,
        path: NamedPath,
        context: Context,
        recursive: Annotated[bool, Query(description="A folder with all in it.")] = False,
    ) -> FileWriteView:
        """Remove a file, or a folder. Needs 'write'."""
        return _told(place, response, await place.delete(path, context, recursive=recursive))

    @router.post("/rename", responses=problem_answers(412))
    async def rename(body: RenameRequest, response: Response, place: At, context: Context) -> FileWriteView:
        """Move a file, or a folder with all in it. Needs 'write'."""
        return _told(place, response, await place.rename(TreePath(body.path), TreePath(body.target), context))

    @router.post("/mkdir")
    async def makefolder_of(body: FolderCreate, response: Response, place: At, context: Message) -> FileWriteView:
        """Make a folder, with those it lies in. Needs 'write'."""
        return _told(place, response, await place.make_folder(TreePath(body.path), context))

    return router


def _told(place: Place, response: Response, result: OperationResult) -> FileWriteView:
    if result.new_hash is not None:
        response.headers["ETag"] = etag_of(result.new_hash)
    return result_view(place.reference, result)


workspace_router = _router("/api/v1/workspaces/{workspace}", "files", workspace_place)
project_router = _router("/api/v1/files/{project}", "files", _project)
