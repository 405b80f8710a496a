"""What an agent did in its folder comes back through the gate, and nothing else does."""

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


async def test_what_an_agent_changed_is_in_the_project_when_it_has_completed(world: WorkspaceWorld) -> None:
    await world.put({"a.txt": b"a\n", "folder/b.txt": b"b\n", "gone.txt": b"gone\n"})
    folder = await world.create("ann")
    (folder / "a.txt").write_bytes(b"changed\n")
    (folder / "new").mkdir()
    (folder / "new" / "c.txt").write_bytes(b"c\n")
    (folder / "gone.txt").unlink()
    completed = await world.complete("ann")
    assert completed.is_removed, completed.kept_because
    assert not folder.exists()
    assert await world.tree() == {"a.txt": b"changed\n", "folder/b.txt": b"b\n", "new/c.txt": b"c\n"}
