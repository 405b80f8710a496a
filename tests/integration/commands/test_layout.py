"""What a command in a sandbox can find out about how its folder was made."""

import re
from pathlib import Path

import pytest
from tests.support.docker_engine import DockerEngine
from tests.support.postgres import database_copy
from tests.support.run_world import RunWorld, open_run_world

from contextbase.db.database import DatabaseAddress
from contextbase.identity.levels import Level

LOOK = "cat /proc/self/mountinfo /proc/self/mounts /proc/mounts"


@pytest.fixture(params=["bubblewrap", "docker"])
def driver(request: pytest.FixtureRequest) -> dict[str, object]:
    """The settings of a server with such sandboxes."""
    if request.param == "docker":
        engine: DockerEngine = request.getfixturevalue("docker_engine")
        return {
            "sandbox_driver": "docker",
            "sandbox_image": engine.image,
            "sandbox_docker_address": engine.address,
        }
    return {"sandbox_driver": request.param}


async def test_mounts_in_a_sandbox_say_nothing_of_the_data_folder_or_of_what_is_hidden(
    embedded_database_server: DatabaseAddress, tmp_path: Path, driver: dict[str, object]
) -> None:
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_run_world(address, tmp_path / "data", **driver) as runs,
    ):
        await runs.world.put({"a.txt": b"a\n", "secret/s.txt": b"s\n"})
        everything = await _mounts(runs, "ann")
        await runs.world.rule("secret/**", Level.HIDDEN)
        without_the_secret = await _mounts(runs, "ben")
        for mounts in (everything, without_the_secret):
            assert "overlay" in mounts
            for name in (tmp_path.name, "workspaces", "mirror", "masks", "layers", str(runs.world.project_id)):
                assert name not in mounts
        assert _layers(everything) == _layers(without_the_secret)


async def _mounts(runs: RunWorld, agent: str) -> str:
    told = await runs.run(LOOK, agent)
    assert told.outcome.exit_code == 0
    return told.output


def _layers(mounts: str) -> int:
    [workspace] = [line for line in mounts.splitlines() if " /workspace " in line and " - " in line]
    return len(re.findall(r"lowerdir\+=|(?<=/fd/)\d+(?=[:,])", workspace))
