"""A world to work in, with each kind of folder."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.support.postgres import database_copy
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS

from contextbase.db.database import DatabaseAddress


@pytest.fixture(params=PROVIDERS)
async def world(
    request: pytest.FixtureRequest, embedded_database_server: DatabaseAddress, tmp_path: Path
) -> AsyncIterator[WorkspaceWorld]:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, tmp_path / "data", request.param) as world,
    ):
        yield world
