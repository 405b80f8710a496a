from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest
from tests.support.agent_world import AgentWorld, open_agent_world
from tests.support.held_connections import second_connections_noticed
from tests.support.postgres import database_copy
from tests.support.session_world import SessionWorld

from contextbase.db.database import Database, DatabaseAddress


@pytest.fixture(autouse=True)
def nobody_takes_a_second_connection() -> Iterator[None]:
    with second_connections_noticed() as found:
        yield
    assert found == []


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[SessionWorld]:
    async with SessionWorld.opened(database, tmp_path) as world:
        yield world


@pytest.fixture
async def agents(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[AgentWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_agent_world(address, tmp_path / "data") as world,
    ):
        yield world
