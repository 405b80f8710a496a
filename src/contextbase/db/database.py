"""The connection pool and `transaction()`: the only way SQL is run."""

import asyncio
import logging
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal, Self

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from contextbase.errors import Damaged, DatabaseUnavailable, MachineProblem, Misconfigured

__all__ = ["Connection", "Database", "DatabaseAddress"]

_log = logging.getLogger(__name__)

Connection = PoolConnectionProxy

OLDEST_SUPPORTED: Final = 15
_CONNECT_TIMEOUT_SECONDS: Final = 10.0

# The server is away, going away, coming back or full: trying again later may help.
_LOST: Final = (
    ConnectionError,
    TimeoutError,
    asyncpg.PostgresConnectionError,
    asyncpg.CannotConnectNowError,
    asyncpg.TooManyConnectionsError,
    asyncpg.AdminShutdownError,
    asyncpg.CrashShutdownError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)

# A page fails its checksum, or the disk does not give it back.
_BROKEN: Final = (asyncpg.DataCorruptedError, asyncpg.IndexCorruptedError, asyncpg.PostgresIOError)


@dataclass(frozen=True, kw_only=True, slots=True)
class DatabaseAddress:
    """Where a database is: a URL, or a Unix socket folder with a database name (the embedded server)."""

    url: str | None = None
    socket_folder: str | None = None
    database: str = "contextbase"
    user: str = "contextbase"

    def connect_arguments(self) -> dict[str, Any]:
        """asyncpg's. For the embedded server all of them: what is not said, it would take from PGPORT and the like."""
        if self.url:
            return {"dsn": self.url}
        return {
            "host": self.socket_folder,
            "port": 5432,
            "user": self.user,
            "database": self.database,
            "ssl": False,
            "target_session_attrs": "any",
        }

    def __repr__(self) -> str:
        # The URL may hold a password.
        return f"DatabaseAddress({'url' if self.url else self.socket_folder})"


class Database:
    """A pool of connections to one PostgreSQL database.

    `writers` has a part of the connections, for the gate alone. Whoever else asks much goes through all that there are,
    and a connection that is used by turns for everything is slow at each: it plans statements, and learns of tables and
    foreign keys, for itself."""

    def __init__(self, pool: "asyncpg.Pool[asyncpg.Record]", *, writers: "Database | None" = None) -> None:
        self._pool = pool
        self.writers = writers or self

    @classmethod
    async def connect(
        cls, address: DatabaseAddress, *, pool_size: int = 20, statement_timeout_seconds: float = 60.0
    ) -> Self:
        """Open the pool and check the server's version; raises `DatabaseUnavailable` or `Misconfigured`."""

        async def pool(size: int) -> "asyncpg.Pool[asyncpg.Record]":
            return await asyncpg.create_pool(
                **address.connect_arguments(),
                min_size=0,
                max_size=size,
                timeout=_CONNECT_TIMEOUT_SECONDS,
                command_timeout=statement_timeout_seconds,
                server_settings={"application_name": "contextbase", "timezone": "UTC", "jit": "off"},
                init=_learn_arrays,
                reset=_nothing_to_reset,
            )

        for_writers = pool_size // 4 or 1
        database = cls(await pool(max(1, pool_size - for_writers)), writers=cls(await pool(for_writers)))
        try:
            await database._check_version()
        except Exception:
            await database.close()
            raise
        return database

    async def _check_version(self) -> None:
        async with self.connection() as connection:
            version = connection.get_server_version()
            encoding = await connection.fetchval("SHOW server_encoding")
        if version.major < OLDEST_SUPPORTED:
            raise Misconfigured(
                f"The database is PostgreSQL {version.major}; contextbase needs {OLDEST_SUPPORTED} or newer."
            )
        if encoding != "UTF8":
            raise Misconfigured(
                f"The database's encoding is {encoding}, and contextbase needs UTF8. "
                "Create the database with ENCODING 'UTF8'."
            )

    @property
    def size(self) -> int:
        """How many connections it has at most, those of the writers apart."""
        return self._pool.get_max_size()

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """A connection for reads that need no transaction of their own."""
        connection = await self._acquire()
        try:
            yield connection
        except _LOST as error:
            raise DatabaseUnavailable(f"The database does not answer ({type(error).__name__}).") from error
        except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            # A connection or pool that was closed under us.
            raise DatabaseUnavailable("The connection to the database was lost.") from error
        except asyncpg.ReadOnlySQLTransactionError as error:
            raise DatabaseUnavailable("The database takes no writes: it is read-only, or a standby.") from error
        except asyncpg.DiskFullError as error:
            raise MachineProblem("The disk of the database is full; free some space there.") from error
        except _BROKEN as error:
            raise Damaged(
                f"The database cannot read its own files ({error.args[0]}). Check the disk, and restore a backup."
            ) from error
        except asyncpg.InsufficientPrivilegeError as error:
            raise Misconfigured(
                f"The database denies this to our user ({error.args[0]}). Make that user the database's owner: "
                "ALTER DATABASE … OWNER TO …"
            ) from error
        finally:
            await self._release(connection)

    async def _release(self, connection: Connection) -> None:
        """Give it back. If it is lost only now, what was done with it is done all the same: the pool makes another."""
        try:
            await self._pool.release(connection)
        except (*_LOST, asyncpg.InterfaceError, asyncpg.InternalClientError):
            _log.warning("a connection to the database was lost while it was given back", exc_info=True)

    async def _acquire(self) -> Connection:
        """The pool connects when somebody asks, so this is where a wrong address or password shows."""
        try:
            return await self._pool.acquire(timeout=_CONNECT_TIMEOUT_SECONDS)
        except asyncpg.InvalidAuthorizationSpecificationError as error:
            raise Misconfigured("The database refuses our user or password; check CONTEXTBASE_DATABASE_URL.") from error
        except asyncpg.InvalidCatalogNameError as error:
            raise Misconfigured("The database named in CONTEXTBASE_DATABASE_URL does not exist; create it.") from error
        except asyncpg.UndefinedObjectError as error:
            raise Misconfigured(
                f"The database does not know an option of CONTEXTBASE_DATABASE_URL: {error.args[0]}."
            ) from error
        except (OSError, *_LOST) as error:
            raise DatabaseUnavailable(
                f"The database does not answer ({type(error).__name__}); check that it runs and its address."
            ) from error
        except ValueError as error:
            raise Misconfigured("CONTEXTBASE_DATABASE_URL is not a usable PostgreSQL URL.") from error
        except (asyncpg.InterfaceError, asyncpg.InternalClientError) as error:
            raise DatabaseUnavailable("The connection to the database was closed.") from error

    @asynccontextmanager
    async def session(self) -> AsyncIterator[Connection]:
        """A connection for what lasts longer than a statement or transaction: session locks, LISTEN."""
        async with self.connection() as connection:
            try:
                yield connection
            finally:
                if not connection.is_closed():
                    await connection.reset()

    @asynccontextmanager
    async def transaction(
        self,
        *,
        isolation: Literal["read_committed", "repeatable_read", "serializable"] = "read_committed",
        readonly: bool = False,
    ) -> AsyncIterator[Connection]:
        """One transaction: committed when the block ends, rolled back when it raises. Inner code never commits."""
        async with self.connection() as connection, connection.transaction(isolation=isolation, readonly=readonly):
            yield connection

    async def close(self) -> None:
        """Give running statements a moment, then close every connection."""
        if self.writers is not self:
            await self.writers.close()
        try:
            await asyncio.wait_for(self._pool.close(), timeout=5.0)
        except TimeoutError:
            self._pool.terminate()


async def _learn_arrays(connection: Any) -> None:
    """asyncpg asks each new connection what an array is, at 5 to 10 ms a question: all at once rather than for every
    statement with another kind of array. (Of text[] it knows.)"""
    await connection.prepare(
        "SELECT $1::uuid[], $2::bytea[], $3::bigint[], $4::integer[], $5::boolean[], $6::timestamptz[]"
    )


async def _nothing_to_reset(_connection: Any) -> None:
    """In the place of asyncpg's own reset, a round trip for each use. An open transaction is rolled back all the same;
    other state of a session is made in `session()` alone, which clears it."""
