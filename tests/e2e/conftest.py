"""The API that a module of tests shares, and what it logs."""

import logging
from collections.abc import AsyncIterator, Iterator

import pytest
import pytest_asyncio
from tests.support.api import MAX_BODY, Api, opened_api, url_of
from tests.support.postgres import database_copy

from contextbase.config import Settings
from contextbase.db.database import DatabaseAddress
from contextbase.logs import trace_id


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def api(
    embedded_database_server: DatabaseAddress, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[Api]:
    async with database_copy(embedded_database_server, "template0") as address:
        data = tmp_path_factory.mktemp("data")
        settings = Settings(data=data, database_url=url_of(address), max_request_bytes=MAX_BODY)
        async with opened_api(settings) as api:
            yield api


@pytest.fixture
def log() -> Iterator[list[tuple[str, logging.LogRecord]]]:
    """Every log record with the trace id that was current."""
    records: list[tuple[str, logging.LogRecord]] = []

    class Keeper(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            records.append((trace_id.get(), record))

    keeper, root = Keeper(), logging.getLogger()
    level = root.level
    root.addHandler(keeper)
    root.setLevel(logging.DEBUG)
    yield records
    root.removeHandler(keeper)
    root.setLevel(level)
