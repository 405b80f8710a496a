"""Open to everyone: is the process up, and can it work?"""

from fastapi import APIRouter, Request, Response

from contextbase.errors import ContextbaseError
from contextbase.ids import ContentHash
from contextbase.interfaces.api.authentication import services_of
from contextbase.interfaces.api.document import OPEN
from contextbase.wire.system import Health, Readiness

__all__ = ["router"]

router = APIRouter(tags=["health"])

_PROBE = ContentHash.of(b"")  # any hash will do: the answer matters, not whether it is there


@router.get("/healthz", openapi_extra=OPEN)
async def healthz() -> Health:
    """The process answers."""
    return Health()


@router.get("/readyz", openapi_extra=OPEN, responses={503: {"model": Readiness, "description": "Something is wrong."}})
async def readyz(request: Request, response: Response) -> Readiness:
    """The database and the blob store answer and take writes; codes only, since anyone may ask.

    Whether they take writes is tried every few seconds at most."""
    services = services_of(request)
    database = blobs = "ok"
    try:
        async with services.database.connection() as connection:
            await connection.fetchval("SELECT 1", timeout=5)
    except ContextbaseError as error:
        database = error.code
    try:
        await services.large_blobs.exists(_PROBE)
    except ContextbaseError as error:
        blobs = error.code
    if (database, blobs) == ("ok", "ok"):
        health = await services.write_probe.check()
        database, blobs = health.database, health.blobs
    if (database, blobs) == ("ok", "ok"):
        return Readiness(status="ready", database=database, blobs=blobs)
    response.status_code = 503
    return Readiness(status="not_ready", database=database, blobs=blobs)
