"""kill -9 of the server at any moment, and reboots: no work of an agent is lost, no mount and no folder left."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.support.api import url_of
from tests.support.postgres import database_copy
from tests.support.workspace_worker import AGENTS, PROJECT, SHARED
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, mounts_below, unmount_all

from contextbase.db.database import DatabaseAddress
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.repository import WorkspaceState

_KILLS = int(os.environ.get("CONTEXTBASE_TEST_KILLS", "10"))
_REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_killed_at_any_moment_no_work_is_lost_and_nothing_is_left_behind(
    embedded_database_server: DatabaseAddress, tmp_path: Path, provider: str
) -> None:
    chance = random.Random(3)
    data = tmp_path / "data"
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, data, provider) as world,
    ):
        world.project_id = (await world.services.projects.create(world.owner, PROJECT)).id
        await world.put({SHARED: b"{}\n"})
        told: set[tuple[str, str]] = set()
        for turn in range(_KILLS):
            command = [url_of(address), str(data), provider, str(turn)]
            told |= _run_and_kill(command, steps=chance.randint(0, 6), pause=chance.uniform(0.0, 0.03))
            if turn % 3 == 0:
                unmount_all(data)
        written, added = ({what for word, what in told if word == wanted} for wanted in ("wrote", "added"))
        assert written
        assert added
        await world.agents.workspace_upkeep.sweep()
        await _complete_all(world)
        tree = await _tree(world)
        shared = tree.pop(SHARED)
        assert isinstance(shared, bytes)
        assert added - json.loads(shared).keys() == set()
        found = {path: _text(body) for path, body in tree.items()}
        assert written - set(found.values()) == set()
        assert len(set(found.values())) == len(found)  # some that it had no time to tell of; each once
        assert all(Path(path).name == Path(made).name for path, made in found.items())  # and all whole
    assert mounts_below(data) == []
    places = ("upper", "work", "copy", "workspaces", "removed", "pins")
    assert [
        path for name in places if (data / "node" / name).is_dir() for path in (data / "node" / name).iterdir()
    ] == []


async def _tree(world: WorkspaceWorld) -> dict[str, object]:
    return {path: node for path, node in (await world.tree()).items() if not path.endswith("draft~")}


def _text(body: object) -> str:
    assert isinstance(body, bytes)
    return body.decode()


async def _complete_all(world: WorkspaceWorld) -> None:
    for record in await world.agents.workspaces.list(world.owner, world.project_id, state=WorkspaceState.OPEN):
        assert record.principal.name in AGENTS
        completed = await world.agents.workspaces.complete(
            world.owner, NamedWorkspace(world.project_id, record.principal.name), wish=Wish()
        )
        assert completed.is_removed, completed.kept_because


def _run_and_kill(arguments: list[str], *, steps: int, pause: float) -> set[tuple[str, str]]:
    """Returns what it said that was in an agent's folder by then."""
    command = [sys.executable, "-m", "tests.support.workspace_worker", *arguments]
    lines = []
    with subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE, text=True) as worker:
        assert worker.stdout is not None
        for line in worker.stdout:
            lines.append(line)
            steps -= line.startswith(("made ", "started"))
            if steps < 0:
                break
        time.sleep(pause)
        worker.send_signal(signal.SIGKILL)
        lines += worker.stdout.read().splitlines()
    assert steps < 0, "it ended by itself"
    return {(word, what) for word, _, what in (line.strip().partition(" ") for line in lines)}
