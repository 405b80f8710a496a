"""The pool: what a caller sees when the database is away, refuses us, or fills up."""

import asyncio
import socket

import asyncpg
import pytest
from tests.support.postgres import named, run_on_server

from contextbase.db.database import Database, DatabaseAddress
from contextbase.errors import DatabaseUnavailable, Misconfigured, NotFound

PASSWORD = "correct-horse-battery-staple"


async def test_a_transaction_is_committed_when_its_block_ends(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute("CREATE TABLE kept (n int)")
        await connection.execute("INSERT INTO kept VALUES (1)")
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT n FROM kept") == 1


async def test_a_transaction_is_rolled_back_when_its_block_raises(database: Database) -> None:
    async def fail() -> None:
        async with database.transaction() as connection:
            await connection.execute("CREATE TABLE lost (n int)")
            raise NotFound("nothing here")

    with pytest.raises(NotFound, match="nothing here"):
        await fail()
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT to_regclass('lost')") is None


async def test_a_cancelled_transaction_is_rolled_back_and_gives_its_connection_back(
    embedded_database_server: DatabaseAddress,
) -> None:
    database = await Database.connect(embedded_database_server, pool_size=1)
    begun = asyncio.Event()

    async def work() -> None:
        async with database.transaction() as connection:
            await connection.execute("CREATE TABLE cancelled (n int)")
            begun.set()
            await asyncio.sleep(60)

    task = asyncio.create_task(work())
    await begun.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT to_regclass('cancelled')") is None
    await database.close()


async def test_writers_do_not_wait_for_those_who_have_all_other_connections(
    embedded_database_server: DatabaseAddress,
) -> None:
    database = await Database.connect(embedded_database_server, pool_size=2)
    async with database.connection(), asyncio.timeout(5), database.writers.transaction() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await database.close()
    with pytest.raises(DatabaseUnavailable):
        async with database.writers.connection():
            pass


async def test_a_connection_lost_while_it_is_given_back_does_not_fail_what_was_done(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    release = asyncpg.Pool.release

    async def release_and_lose(pool: asyncpg.Pool, connection: object) -> None:
        await release(pool, connection)
        raise asyncpg.InternalClientError("got result for unknown protocol state")

    monkeypatch.setattr(asyncpg.Pool, "release", release_and_lose)
    async with database.transaction() as connection:
        await connection.execute("CREATE TABLE done AS SELECT 1 AS n")
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT n FROM done") == 1


async def test_a_read_only_transaction_cannot_write(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable) as caught:
        async with database.transaction(readonly=True) as connection:
            await connection.execute("CREATE TABLE x (n int)")
    assert isinstance(caught.value.__cause__, asyncpg.ReadOnlySQLTransactionError)


async def test_nobody_listening_is_unavailable() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        url = f"postgresql://me:{PASSWORD}@127.0.0.1:{taken.getsockname()[1]}/x"
        with pytest.raises(DatabaseUnavailable) as caught:
            await Database.connect(DatabaseAddress(url=url))
    assert PASSWORD not in caught.value.message


async def test_an_unknown_host_is_unavailable() -> None:
    with pytest.raises(DatabaseUnavailable):
        await Database.connect(DatabaseAddress(url="postgresql://no-such-host.invalid/x"))


async def test_a_wrong_password_is_the_operators_business_and_is_not_shown(
    external_database_server: DatabaseAddress,
) -> None:
    assert external_database_server.url is not None
    before, _, after = external_database_server.url.rpartition("@")
    wrong = f"{before.rpartition(':')[0]}:{PASSWORD}@{after}"
    with pytest.raises(Misconfigured, match="CONTEXTBASE_DATABASE_URL") as caught:
        await Database.connect(DatabaseAddress(url=wrong))
    assert PASSWORD not in f"{caught.value.message} {caught.value.details}"


async def test_a_database_that_does_not_exist_is_the_operators_business(database_server: DatabaseAddress) -> None:
    with pytest.raises(Misconfigured, match="does not exist"):
        await Database.connect(named(database_server, "no_such_database"))


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me@localhost:port/x",
        "postgresql://me@localhost:99999/x",
        "postgresql://me@localhost/x?sslmode=maybe",
        "postgresql://me@localhost/x?sslmode=verify-full&sslrootcert=/no/such/file",
    ],
)
async def test_a_url_that_cannot_be_used_is_an_error_of_ours(url: str) -> None:
    with pytest.raises((Misconfigured, DatabaseUnavailable)):
        await Database.connect(DatabaseAddress(url=url))


async def test_a_user_that_may_not_make_tables_is_the_operators_business(database: Database) -> None:
    async def make_table() -> None:
        async with database.transaction() as connection:
            await connection.execute("SET LOCAL ROLE pg_monitor")
            await connection.execute("CREATE TABLE x (n int)")

    with pytest.raises(Misconfigured, match="permission denied"):
        await make_table()


async def test_an_option_the_database_does_not_know_is_the_operators_business(
    external_database_server: DatabaseAddress,
) -> None:
    with pytest.raises(Misconfigured, match="no_such_option"):
        await Database.connect(DatabaseAddress(url=f"{external_database_server.url}?no_such_option=1"))


async def test_a_database_that_has_not_every_character_is_refused(database_server: DatabaseAddress) -> None:
    await run_on_server(
        database_server,
        "CREATE DATABASE in_latin1 ENCODING 'LATIN1' LOCALE_PROVIDER libc LOCALE 'C' TEMPLATE template0",
    )
    try:
        with pytest.raises(Misconfigured, match="LATIN1"):
            await Database.connect(named(database_server, "in_latin1"))
    finally:
        await run_on_server(database_server, "DROP DATABASE in_latin1 WITH (FORCE)")


async def test_a_connection_ended_by_the_server_is_unavailable_and_the_next_one_works(database: Database) -> None:
    with pytest.raises(DatabaseUnavailable):
        async with database.connection() as connection:
            await connection.execute("SELECT pg_terminate_backend(pg_backend_pid())")
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT 1") == 1


async def test_a_statement_over_its_time_is_unavailable_and_the_connection_is_usable_again(
    embedded_database_server: DatabaseAddress,
) -> None:
    database = await Database.connect(embedded_database_server, pool_size=1, statement_timeout_seconds=2)
    with pytest.raises(DatabaseUnavailable):
        async with database.connection() as connection:
            await connection.execute("SELECT pg_sleep(60)")
    async with database.connection() as connection:
        assert await connection.fetchval("SELECT 1") == 1
    await database.close()


async def test_a_file_error_inside_the_block_is_not_blamed_on_the_database(embedded_database: Database) -> None:
    with pytest.raises(FileNotFoundError):
        async with embedded_database.transaction():
            raise FileNotFoundError("a file of the caller's")


async def test_a_closed_database_is_unavailable(embedded_database_server: DatabaseAddress) -> None:
    database = await Database.connect(embedded_database_server)
    await database.close()
    with pytest.raises(DatabaseUnavailable):
        async with database.connection():
            pass


def test_an_address_in_a_debugger_has_no_password() -> None:
    assert PASSWORD not in repr(DatabaseAddress(url=f"postgresql://me:{PASSWORD}@db/x"))
