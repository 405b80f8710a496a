"""Whether anything can be stored at the moment: found out by storing something."""

import asyncio
import logging
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from contextbase.db.database import Database
from contextbase.db.queries import load_queries
from contextbase.errors import ContextbaseError
from contextbase.storage.blobs.ports import BlobStore

__all__ = ["WriteHealth", "WriteProbe"]

_log = logging.getLogger(__name__)

_SQL: Final = load_queries("contextbase.storage")
_BYTES: Final = 4096
_LONGEST_SECONDS: Final = 10.0
OK: Final = "ok"


@dataclass(frozen=True, kw_only=True, slots=True)
class WriteHealth:
    """`ok`, or the code of what is wrong."""

    database: str
    blobs: str


class WriteProbe:
    """Writes a row of its own, and a blob that it removes again. Anyone may ask, so an answer is kept for a while."""

    def __init__(self, *, database: Database, blobs: BlobStore, keep_seconds: float = 5.0) -> None:
        self._database = database
        self._blobs = blobs
        self._keep_seconds = keep_seconds
        self._one_at_a_time = asyncio.Lock()
        self._last: tuple[float, WriteHealth] | None = None

    async def check(self) -> WriteHealth:
        async with self._one_at_a_time:
            now = asyncio.get_running_loop().time()
            if self._last is not None and now - self._last[0] < self._keep_seconds:
                return self._last[1]
            database, blobs = await asyncio.gather(_code_of(self._write_row), _code_of(self._write_blob))
            health = WriteHealth(database=database, blobs=blobs)
            self._last = (asyncio.get_running_loop().time(), health)
            return health

    async def _write_row(self) -> None:
        async with self._database.connection() as connection:
            await connection.execute(_SQL.write_probe, timeout=_LONGEST_SECONDS)

    async def _write_blob(self) -> None:
        async def content() -> AsyncIterator[bytes]:
            yield secrets.token_bytes(_BYTES)

        stored = await self._blobs.put(content())
        await self._blobs.delete(stored.hash)


async def _code_of(write: Callable[[], Awaitable[None]]) -> str:
    try:
        async with asyncio.timeout(_LONGEST_SECONDS):
            await write()
    except TimeoutError:
        return "unavailable"
    except ContextbaseError as error:
        _log.warning("nothing can be stored: %s", error, extra={"code": error.code})
        return error.code
    return OK
