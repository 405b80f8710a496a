"""kill -9 of the server while it refreshes a folder that an agent works in: no side's work is lost or undone."""

import asyncio
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
from tests.support.refresh_worker import AGENT, FILES, PROJECT, content
from tests.support.workspace_world import WorkspaceWorld, open_world
from tests.support.workspaces import PROVIDERS, unmount_all

from contextbase.db.database import DatabaseAddress
from contextbase.ids import TreePath
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace
from contextbase.workspaces.repository import WorkspaceRecord

_KILLS = int(os.environ.get("CONTEXTBASE_TEST_KILLS", "10"))
_REPOSITORY = Path(__file__).parents[3]


@pytest.mark.parametrize("provider", PROVIDERS)
async def test_killed_at_any_moment_of_a_refresh_both_sides_work_comes_together(
    embedded_database_server: DatabaseAddress, tmp_path: Path, provider: str
) -> None:
    """Whoever took a file for newer than it is would undo the others' last change with the agent's next commit."""
    chance = random.Random(7)
    data = tmp_path / "data"
    async with (
        database_copy(embedded_database_server, "contextbase_template") as address,
        open_world(address, data, provider) as world,
    ):
        world.project_id = (await world.services.projects.create(world.owner, PROJECT)).id
        start: dict[str, bytes | None] = dict.fromkeys(FILES, content(agent=0, others=0))
        await world.put({**start, "new/0.txt": b"new\n"})
        folder = (await world.agents.workspaces.create(world.owner, world.project_id, AGENT)).record.path
        turn, journals = 0, 0
        written = dict.fromkeys(FILES, 0)
        for kill in range(1, _KILLS + 1):
            command = [url_of(address), str(data), provider, str(turn + 1)]
            await _run_and_kill(world, command, pause=chance.uniform(0.0, 0.1) if kill % 2 else None)
            [turn] = await _others(world)
            journals += (await _record(world)).refresh is not None
            if kill % 3 == 0 and provider == "overlay":
                unmount_all(data)  # as a reboot does
                await world.agents.workspaces.path(world.owner, NamedWorkspace(world.project_id, AGENT))
            for path in chance.sample(FILES, 4):
                _edit(folder / path, kill, in_place=chance.random() < 0.5)
                written[path] = kill
            if kill % 4 == 0:
                await world.agents.workspaces.refresh(world.owner, NamedWorkspace(world.project_id, AGENT))
                assert (await _record(world)).refresh is None
        completed = await world.agents.workspaces.complete(
            world.owner, NamedWorkspace(world.project_id, AGENT), wish=Wish()
        )
        assert completed.is_removed, completed.kept_because
        assert completed.committed.refused == ()
        tree = await world.tree()
        assert tree == {path: content(agent=written[path], others=turn) for path in FILES} | {
            f"new/{turn}.txt": b"new\n"
        }
        assert _KILLS < 10 or journals > 0, "no kill hit a refresh under way"


async def _record(world: WorkspaceWorld) -> WorkspaceRecord:
    [record] = await world.agents.workspaces.list(world.owner, world.project_id)
    return record


async def _others(world: WorkspaceWorld) -> list[int]:
    """The turn that the project has: it may not have been told."""
    place = world.agents.files.project(world.owner, world.project_id)
    tree = await place.folder(TreePath("new"))
    return [int(name.removesuffix(".txt")) for name in tree.files]


def _edit(file: Path, agent: int, *, in_place: bool) -> None:
    """As an editor does: whatever the others have in it, it stays."""
    values = json.loads(file.read_text())
    new = content(agent=agent, others=values["others"])
    if in_place:
        file.write_bytes(new)
        return
    draft = file.with_name(f"{file.name}~")
    draft.write_bytes(new)
    draft.rename(file)


async def _run_and_kill(world: WorkspaceWorld, arguments: list[str], *, pause: float | None) -> None:
    """Some seconds after others have changed something; None: as soon as a refresh is under way."""
    command = [sys.executable, "-m", "tests.support.refresh_worker", *arguments]
    with subprocess.Popen(command, cwd=_REPOSITORY, stdout=subprocess.PIPE, text=True) as worker:  # noqa: ASYNC220 - it is quick to start
        assert worker.stdout is not None
        told = next((line for line in worker.stdout if line.startswith("turn ")), None)
        if pause is not None:
            time.sleep(pause)  # noqa: ASYNC251 - nothing else goes on here
        else:
            async with asyncio.timeout(60):
                while (await _record(world)).refresh is None:
                    pass
        worker.send_signal(signal.SIGKILL)
    assert told is not None, "it ended by itself"
