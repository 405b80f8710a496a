"""A world with a feed, on the embedded database."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.feed_world import FeedWorld

from contextbase.db.database import Database


@pytest.fixture
async def world(embedded_database: Database, tmp_path: Path) -> AsyncIterator[FeedWorld]:
    async with FeedWorld.opened(embedded_database, tmp_path) as world:
        yield world
