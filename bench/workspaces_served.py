"""The figures of workspaces that need the database: made, committed and completed as the server does it."""

import os
import time
from pathlib import Path
from random import Random
from typing import Final

from tests.support.gate_world import write
from tests.support.workspaces import unmount_all

from contextbase.bootstrap import Services, open_services
from contextbase.config import Settings
from contextbase.gate.model import CommitRequest
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import NamedWorkspace

__all__ = ["measure_refresh", "measure_served"]

_SIZE: Final = 2048
_LAYERS: Final = 10
_AT_ONCE: Final = 5000
_REFRESHES: Final = 11
_REFRESHED: Final = 100


async def measure_served(folder: Path, paths: list[str], random: Random, *, rounds: int) -> dict[str, list[float]]:
    """Milliseconds of each round; the project has as many layers as the one without a database."""
    try:
        async with open_services(Settings(data=folder / "data", workspace_provider="overlay"), own=True) as services:
            secret = await services.core.identity.ensure_owner(None)
            owner = await services.core.identity.authenticate(secret or "")
            project_id = (await services.core.projects.create(owner, "bench")).id
            for start in range(0, len(paths), _AT_ONCE):
                await _commit(services, owner, project_id, paths[start : start + _AT_ONCE], random)
            for _ in range(_LAYERS - 1):
                await services.agents.workspaces.create(owner, project_id)
                await services.agents.workspaces.abandon(owner, NamedWorkspace(project_id))
                await _commit(services, owner, project_id, random.sample(paths, 10), random)
            os.sync()
            return await _rounds(services, owner, project_id, paths, random, rounds=rounds)
    finally:
        unmount_all(folder)


async def _rounds(
    services: Services, owner: Caller, project_id: ProjectId, paths: list[str], random: Random, *, rounds: int
) -> dict[str, list[float]]:
    took: dict[str, list[float]] = {"commit_floor": [], "create": [], "complete": []}
    workspaces = services.agents.workspaces
    async with services.core.database.connection() as connection:
        await connection.execute("CREATE TABLE bench_floor (number integer)")
        for number in range(rounds):
            began = time.perf_counter()
            await connection.execute("INSERT INTO bench_floor VALUES ($1)", number)
            took["commit_floor"].append((time.perf_counter() - began) * 1000)
            agent = f"agent{number}"
            await workspaces.create(owner, project_id, agent)  # the agent itself is made here, not below
            await workspaces.abandon(owner, NamedWorkspace(project_id, agent))
            began = time.perf_counter()
            created = await workspaces.create(owner, project_id, agent)
            took["create"].append((time.perf_counter() - began) * 1000)
            (created.record.path / random.choice(paths)).write_bytes(random.randbytes(_SIZE))
            began = time.perf_counter()
            completed = await workspaces.complete(owner, NamedWorkspace(project_id, agent), wish=Wish())
            took["complete"].append((time.perf_counter() - began) * 1000)
            assert completed.is_removed
    return took


async def measure_refresh(folder: Path, files: int, random: Random) -> list[float]:
    """Milliseconds that it takes to bring 100 changed files into a workspace of a project with so many."""
    paths = [f"{number // 100:04}/{number:06}.txt" for number in range(files)]
    try:
        async with open_services(Settings(data=folder / "data", workspace_provider="overlay"), own=True) as services:
            secret = await services.core.identity.ensure_owner(None)
            owner = await services.core.identity.authenticate(secret or "")
            project_id = (await services.core.projects.create(owner, "bench")).id
            for start in range(0, files, _AT_ONCE):
                await _commit(services, owner, project_id, paths[start : start + _AT_ONCE], random)
            await services.agents.workspaces.create(owner, project_id)
            os.sync()
            took = []
            for _ in range(_REFRESHES):
                await _commit(services, owner, project_id, random.sample(paths, _REFRESHED), random)
                began = time.perf_counter()
                _, refreshed = await services.agents.workspaces.refresh(owner, NamedWorkspace(project_id))
                took.append((time.perf_counter() - began) * 1000)
                assert len(refreshed.arrived) == _REFRESHED
            return took
    finally:
        unmount_all(folder)


async def _commit(services: Services, owner: Caller, project_id: ProjectId, paths: list[str], random: Random) -> None:
    async with services.core.database.connection() as connection:
        base = (await services.core.gate.opened(connection, owner, project_id)).seq
    changes = tuple(write(path, random.randbytes(_SIZE), base) for path in paths)
    request = CommitRequest(project_id=project_id, changes=changes)
    await services.core.gate.commit(owner, request)
