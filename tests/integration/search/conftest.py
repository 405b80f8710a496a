"""A search over a gate of the test's own."""

from pathlib import Path

import pytest
from tests.support.search_world import SearchWorld

from contextbase.db.database import Database


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> SearchWorld:
    return await SearchWorld.start(database, tmp_path, limit=4096)
