"""How much of the index and of a project one search reads."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from tests.support.gate_world import write
from tests.support.search_world import SearchWorld, lines_of

from contextbase.compute.thread import ThreadCompute
from contextbase.db.database import Connection, Database
from contextbase.gate.repository import GateRepository
from contextbase.search.blob_contents import BlobContents
from contextbase.search.model import ContentQuery
from contextbase.search.pattern import TextPattern
from contextbase.search.service import SearchService

FILES = 1500  # fewer than the gate has analyzed by itself
TABLES = ["search_postings", "search_blobs", "versions", "blob_contents"]


class OneConnection(Database):
    """Everything over one connection, which counts the rows that it reads."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        yield self._connection


async def rows_read(connection: Connection) -> dict[str, int]:
    """From each table, by this connection."""
    rows = await connection.fetch(
        "SELECT relname, seq_tup_read + coalesce(idx_tup_fetch, 0) AS count FROM pg_stat_xact_user_tables "
        "WHERE relname = ANY ($1)",
        TABLES,
    )
    return {row["relname"]: row["count"] for row in rows}


async def test_a_search_for_what_is_rare_reads_few_rows_before_the_tables_are_analyzed(
    database: Database, tmp_path: Path
) -> None:
    world = await SearchWorld.start(database, tmp_path)
    async with database.connection() as connection:
        for table in TABLES:
            await connection.execute(f"ALTER TABLE {table} SET (autovacuum_enabled = off)")
    texts = [b"text number %04d\n%s\n" % (number, b"a needle" * (number % 500 == 7)) for number in range(FILES)]
    await world.gate.commit(*(write(f"f{number:04}", text, 0) for number, text in enumerate(texts)))
    await world.index_all()
    async with database.transaction() as connection:
        one = OneConnection(connection)
        contents = BlobContents(database=one, repository=GateRepository(), catalog=world.gate.catalog)
        search = SearchService(database=one, reads=world.gate.reads, contents=contents, compute=ThreadCompute())
        query = ContentQuery(pattern=TextPattern(text="a needle"))
        before = await rows_read(connection)
        page = await search.contents(world.gate.owner, world.gate.project.id, query)
        after = await rows_read(connection)
    assert [path for path, _, _ in lines_of(page)] == ["f0007", "f0507", "f1007"]
    read = {table: after[table] - before[table] for table in TABLES}
    assert {table: count for table, count in read.items() if count > 100} == {}
