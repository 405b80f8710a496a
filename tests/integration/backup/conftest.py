"""A system to back up, an empty place to restore to, and both kinds of target."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.backups import Place, System, opened_system, place

from contextbase.db.database import DatabaseAddress


@pytest.fixture
async def system(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[System]:
    async with place(embedded_database_server, tmp_path / "data") as found, opened_system(found.settings) as system:
        yield system


@pytest.fixture
async def elsewhere(embedded_database_server: DatabaseAddress, tmp_path: Path) -> AsyncIterator[Place]:
    async with place(embedded_database_server, tmp_path / "elsewhere") as found:
        yield found


@pytest.fixture(params=["backups", "backup.tar"])
def target(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    return tmp_path / str(request.param)
