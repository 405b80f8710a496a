"""Backups need every blob to stay where it is; whoever removes bytes asks here first.

A backup holds one advisory lock shared from before its snapshot to its end; each removal of a blob holds it alone. So a
removal is done before the snapshot or begins after the backup, and several backups may run.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.errors import Conflict, DatabaseUnavailable

__all__ = ["KeptBlobs", "blobs_kept", "hold_for_removal"]

_SQL: Final = load_queries("contextbase.storage")
_TRIES: Final = 50
_BETWEEN_TRIES_SECONDS: Final = 0.1
_BETWEEN_SIGNS_OF_LIFE_SECONDS: Final = 30.0


class KeptBlobs:
    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._asking = asyncio.Lock()

    async def confirm(self) -> None:
        """That nothing was removed until now; raises `DatabaseUnavailable` if the lock went with its connection."""
        async with self._asking:
            if not await self._connection.fetchval(_SQL.blobs_are_kept):
                raise DatabaseUnavailable("The connection that keeps the blobs in place was lost; start again.")

    async def stay_connected(self) -> None:
        """A connection on which nothing is said for long may be cut by what lies between."""
        while True:
            await asyncio.sleep(_BETWEEN_SIGNS_OF_LIFE_SECONDS)
            await self.confirm()


@asynccontextmanager
async def blobs_kept(database: Database) -> AsyncIterator[KeptBlobs]:
    """No blob is removed until the block ends; waits for a removal that is under way. `confirm` before you rely on
    it: the lock dies with its connection."""
    async with database.session() as connection:
        await connection.execute(_SQL.keep_blobs, timeout=600)
        kept = KeptBlobs(connection)
        living = asyncio.create_task(kept.stay_connected())
        try:
            yield kept
        finally:
            living.cancel()
            await asyncio.gather(living, return_exceptions=True)  # its failure shows in `confirm`


async def hold_for_removal(connection: Connection) -> None:
    """Until the session ends no backup begins; raises `Conflict` while one runs. Another removal is waited for."""
    for _ in range(_TRIES):
        if await connection.fetchval(_SQL.may_remove_blobs):
            return
        await asyncio.sleep(_BETWEEN_TRIES_SECONDS)
    raise Conflict("A backup is running and needs every blob to stay. Try again when it is done.")
