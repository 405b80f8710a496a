from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.session_world import SessionWorld

from contextbase.db.database import Database


@pytest.fixture
async def world(database: Database, tmp_path: Path) -> AsyncIterator[SessionWorld]:
    async with SessionWorld.opened(database, tmp_path) as world:
        yield world
