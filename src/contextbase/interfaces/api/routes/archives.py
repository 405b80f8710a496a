"""A snapshot, or a part of one, as a tar or zip file."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Final
from urllib.parse import quote

from fastapi import APIRouter, Query
from fastapi.responses import StreamingResponse

from contextbase.history.archive_writers import ArchiveFormat
from contextbase.ids import TreePath
from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.wire.commit import ProjectName
from contextbase.wire.snapshot import LONGEST_REF

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/history", tags=["history"], responses=problem_answers(404))

_TYPES: Final = {
    ArchiveFormat.TAR: "application/x-tar",
    ArchiveFormat.TAR_GZ: "application/gzip",
    ArchiveFormat.ZIP: "application/zip",
}
_BYTES: Final = {"schema": {"type": "string", "format": "binary"}}
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The archive, made while it is sent; the header X-Snapshot says of which snapshot.",
        "content": dict.fromkeys(_TYPES.values(), _BYTES),
    }
}


@router.get("/archive", response_class=StreamingResponse, responses=_ANSWERS)
async def archive(
    *,
    project: Annotated[ProjectName, Query()],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
    at: Annotated[str, Query(max_length=LONGEST_REF, description="The snapshot.")] = "head",
    path: Annotated[str | None, Query(max_length=2048, description="A file, or a folder and all in it.")] = None,
    form: Annotated[ArchiveFormat, Query(alias="format")] = ArchiveFormat.TAR,
) -> StreamingResponse:
    """What you may see of a snapshot, or of a part of it, under the names it has in the project."""
    project_id = await services.projects.id_of(caller, project)
    place = TreePath.parse(path) if path else None
    made = await services.archives.open(caller, project_id, ref=at, path=place, form=form)

    async def pieces() -> AsyncIterator[bytes]:
        async with aclosing(made.pieces) as parts:
            async for piece in parts:
                if piece:
                    yield piece

    name = quote(f"{project}-{made.seq}.{form}", safe="")
    headers = {"X-Snapshot": str(made.seq), "Content-Disposition": f"attachment; filename*=UTF-8''{name}"}
    return StreamingResponse(pieces(), media_type=_TYPES[form], headers=headers)
