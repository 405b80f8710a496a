"""COPY that ends in good order when whoever takes or feeds it fails or is cancelled.

An exception out of asyncpg's own callbacks leaves the connection waiting for the end of a command that may be over
already. So a failure is kept until the server has said its last word, and raised then.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterable, Awaitable, Callable
from typing import Final

import asyncpg

from contextbase.backup.manifest import TableRecord
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.threads import ended

__all__ = ["LONGEST_SECONDS", "copy_in", "copy_out"]

_SQL: Final = load_queries("contextbase.backup")
LONGEST_SECONDS: Final = 7 * 24 * 3600.0  # a table may be large and the disk slow: no statement to cut off


async def copy_out(
    database: Database,
    connection: Connection,
    table: str,
    columns: tuple[str, ...],
    take: Callable[[bytes], Awaitable[None]],
) -> int:
    """Pass a table to `take`, piece by piece, and return how many rows it has."""
    failure: list[Exception] = []

    async def stop() -> None:
        async with database.connection() as another:
            await another.execute(_SQL.cancel_statement, connection.get_server_pid())

    async def sink(piece: bytes) -> None:
        if failure:
            return
        try:
            await take(piece)
        except Exception as error:  # noqa: BLE001 - raised below
            failure.append(error)
            await stop()

    copying = asyncio.ensure_future(
        connection.copy_from_table(table, output=sink, columns=columns, format="binary", timeout=LONGEST_SECONDS)
    )
    try:
        status = await asyncio.shield(copying)
    except asyncio.CancelledError:
        await stop()
        await ended(copying)
        raise
    except asyncpg.QueryCanceledError as error:
        raise (failure or [error])[0] from None
    if failure:
        raise failure[0]
    return _rows(status)


async def copy_in(connection: Connection, table: TableRecord, pieces: AsyncIterable[bytes]) -> int:
    """Fill a table and return how many rows it took. Raises what the pieces raise, rather than what the server makes
    of half a table."""
    failure: list[Exception] = []
    stopped = asyncio.Event()

    async def source() -> AsyncGenerator[bytes, None]:
        try:
            async for piece in pieces:
                if stopped.is_set():
                    return
                yield piece
        except Exception as error:  # noqa: BLE001 - raised below
            failure.append(error)

    copying = asyncio.ensure_future(
        connection.copy_to_table(
            table.name, source=source(), columns=table.columns, format="binary", timeout=LONGEST_SECONDS
        )
    )
    try:
        status = await asyncio.shield(copying)
    except asyncio.CancelledError:
        stopped.set()
        await ended(copying)
        raise
    except asyncpg.PostgresError as error:
        raise (failure or [error])[0] from None
    if failure:
        raise failure[0]
    return _rows(status)


def _rows(status: str) -> int:
    """`COPY 12`"""
    return int(status.rsplit(maxsplit=1)[-1])
