"""A run in each kind of sandbox that the settings can name."""

from pathlib import Path

import pytest
from tests.support.docker_engine import DockerEngine
from tests.support.postgres import database_copy
from tests.support.run_world import open_run_world
from tests.support.workspaces import mounts_below

from contextbase.db.database import DatabaseAddress
from contextbase.errors import Unavailable
from contextbase.workspaces.service import Completed


async def test_a_run_in_docker_brings_its_changes_back(
    embedded_database_server: DatabaseAddress, tmp_path: Path, docker_engine: DockerEngine
) -> None:
    options = {
        "sandbox_driver": "docker",
        "sandbox_image": docker_engine.image,
        "sandbox_docker_address": docker_engine.address,
    }
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_run_world(address, tmp_path / "data", **options) as runs,
    ):
        await runs.world.put({"a.txt": b"a\n"})
        told = await runs.run("cat a.txt; id -u; echo b >> a.txt; echo new > n.txt")
        assert told.output == "a\n61184\n"
        assert isinstance(told.end, Completed)
        assert told.end.is_removed
        assert await runs.world.tree() == {"a.txt": b"a\nb\n", "n.txt": b"new\n"}
        ann = await runs.world.agent("ann")
        sandbox_id = (await runs.sandbox(ann)).record.id
        await runs.exec(ann, sandbox_id, "mkdir d; cd d; echo kept > /tmp/kept")
        assert (await runs.exec(ann, sandbox_id, "pwd; cat /tmp/kept"))[0] == "/workspace/d\nkept\n"
        assert (await runs.world.complete("ann")).is_removed
        assert mounts_below(tmp_path / "data") == []


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"sandbox_driver": "none"}, "Without a sandbox agents can read and change"),
        ({"sandbox_driver": "docker", "sandbox_docker_address": "unix:///nowhere.sock"}, "docker:"),
    ],
)
async def test_a_server_without_a_sandbox_says_why_and_leaves_nothing(
    embedded_database_server: DatabaseAddress, tmp_path: Path, options: dict[str, object], why: str
) -> None:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_run_world(address, tmp_path / "data", **options) as runs,
    ):
        with pytest.raises(Unavailable, match=why):
            await runs.run("true", "one")
        assert await runs.world.agents.workspaces.list(runs.world.owner, runs.world.project_id) == []
