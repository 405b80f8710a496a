"""What is stored of a session beside the project's files, as a tar file."""

from collections.abc import AsyncIterator
from contextlib import aclosing
from typing import Annotated, Any, Final
from uuid import UUID

from fastapi import APIRouter, Path
from fastapi.responses import StreamingResponse

from contextbase.interfaces.api.authentication import AuthenticatedCaller, AuthenticatedServices
from contextbase.interfaces.api.document import problem_answers
from contextbase.sessions.model import SessionId

__all__ = ["router"]

router = APIRouter(prefix="/api/v1/sessions", tags=["sessions"], responses=problem_answers(404))

_TAR: Final = "application/x-tar"
_ANSWERS: Final[dict[int | str, dict[str, Any]]] = {
    200: {
        "description": "The archive, made while it is sent.",
        "content": {_TAR: {"schema": {"type": "string", "format": "binary"}}},
    }
}


@router.get("/{session}/snapshot", response_class=StreamingResponse, responses=_ANSWERS)
async def download_snapshot(
    session: Annotated[UUID, Path(description="The session's id.")],
    caller: AuthenticatedCaller,
    services: AuthenticatedServices,
) -> StreamingResponse:
    """The session's own files and its work that is not committed, as they were stored last: after each run, and every
    few minutes of one. It needs no machine. 404 before anything was stored."""
    opened = await services.sessions.snapshots.open(caller, SessionId(session))

    async def pieces() -> AsyncIterator[bytes]:
        async with aclosing(opened.pieces) as parts:
            async for piece in parts:
                if piece:
                    yield piece

    headers = {"Content-Disposition": f'attachment; filename="session-{session}.tar"'}
    return StreamingResponse(pieces(), media_type=_TAR, headers=headers)
