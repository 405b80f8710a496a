"""Sandboxes: what our drivers add to a bare bubblewrap and to Docker's own command, and what a whole run costs.

    python -m bench.sandbox [--files 1000] [--rounds 40] [--json]

Each figure is a median; what is compared is done in turns, in one run.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from pathlib import Path
from typing import NamedTuple

import uvloop
from tests.support.gate_world import write
from tests.support.postgres import reachable_folder
from tests.support.run_world import remove_sandboxes
from tests.support.workspaces import unmount_all

from bench.sandbox_docker import measure_docker
from contextbase.bootstrap import Services, open_services
from contextbase.commands.model import RunRequest
from contextbase.config import Settings
from contextbase.gate.model import CommitRequest
from contextbase.identity.model import Caller
from contextbase.ids import ProjectId, new_uuid
from contextbase.sandbox.bubblewrap import BubblewrapDriver
from contextbase.sandbox.model import SANDBOX_LIMITS, Command, CommandOutcome, SandboxId, SandboxSpec, TerminalSize
from contextbase.sandbox.ports import SandboxDriver
from contextbase.workspaces.checkpoints import Wish
from contextbase.workspaces.model import Owner

TRUE = Command(argv=("/bin/true",))
TEN_FILES = Command(argv=("/bin/sh", "-c", "for i in 0 1 2 3 4 5 6 7 8 9; do echo $$ > f$i.txt; done"))


class _Server(NamedTuple):
    services: Services
    owner: Caller
    project_id: ProjectId


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--files", type=int, default=1000, help="in the project")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--crowd", type=int, default=100, help="sandboxes that start at once: hundred_start_s")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with reachable_folder(in_memory=False) as folder:
        try:
            figures = uvloop.run(_measure(folder, files=options.files, rounds=options.rounds, crowd=options.crowd))
            figures |= measure_docker(options.rounds)
        finally:
            asyncio.run(remove_sandboxes(folder / "data"))
            unmount_all(folder)
    if options.json:
        print(json.dumps(figures))
        return
    for name, value in figures.items():
        print(f"{name:26} {value}")


async def _measure(folder: Path, *, files: int, rounds: int, crowd: int) -> dict[str, float]:
    settings = Settings(data=folder / "data", workspace_provider="overlay", sandbox_driver="bubblewrap")
    async with open_services(settings, own=True) as services:
        secret = await services.core.identity.ensure_owner(None)
        owner = await services.core.identity.authenticate(secret or "")
        project_id = (await services.core.projects.create(owner, "bench")).id
        changes = tuple(write(f"{number // 100:03}/{number:06}.txt", os.urandom(2048), 0) for number in range(files))
        await services.core.gate.commit(owner, CommitRequest(project_id=project_id, changes=changes))
        workspace = (await services.agents.workspaces.create(owner, project_id)).record.path
        return await _bubblewrap(folder, workspace, _Server(services, owner, project_id), rounds, crowd)


async def _bubblewrap(folder: Path, workspace: Path, server: _Server, rounds: int, crowd: int) -> dict[str, float]:
    driver = BubblewrapDriver(folder / "driver", owner=Owner.of_agents(None), node=f"bench-{os.getpid()}")
    bare = await driver.bare_line(_spec(workspace), TRUE)
    try:
        turns: dict[str, Callable[[], Awaitable[None]]] = {
            "bwrap_exec_ms": lambda: _ended(driver, _spec(workspace), TRUE),
            "bare_exec_ms": lambda: _bare(bare),
            "run_command_ms": lambda: _run(server, TRUE),
            "run_command_10_files_ms": lambda: _run(server, TEN_FILES),
        }
        figures = await _in_turns(turns, rounds)
        lasting = _spec(workspace)
        await driver.create(lasting)
        await driver.start(lasting.id)
        figures |= await _in_turns({"pty_first_byte_ms": lambda: _first_byte(driver, lasting.id)}, rounds)
        await driver.remove(lasting.id)
        specs = [_spec(workspace) for _ in range(crowd)]
        began = time.perf_counter()
        await asyncio.gather(*(_started(driver, spec) for spec in specs))
        figures["hundred_start_s"] = round(time.perf_counter() - began, 2)
        await asyncio.gather(*(driver.remove(spec.id) for spec in specs))
        return figures
    finally:
        await driver.close()


async def _in_turns(turns: dict[str, Callable[[], Awaitable[None]]], rounds: int) -> dict[str, float]:
    took: dict[str, list[float]] = {name: [] for name in turns}
    for number in range(rounds + 3):
        for name, turn in turns.items():
            began = time.perf_counter()
            await turn()
            if number >= 3:  # the first ones warm up
                took[name].append((time.perf_counter() - began) * 1000)
    return {name: round(statistics.median(each), 2) for name, each in took.items()}


def _spec(workspace: Path) -> SandboxSpec:
    return SandboxSpec(id=SandboxId(int=new_uuid().int), folder=workspace, limits=SANDBOX_LIMITS)


async def _ended(driver: SandboxDriver, spec: SandboxSpec, command: Command) -> None:
    execution = await driver.run(spec, command)
    assert (await execution.wait()).succeeded


async def _started(driver: SandboxDriver, spec: SandboxSpec) -> None:
    await driver.create(spec)
    await driver.start(spec.id)


async def _first_byte(driver: SandboxDriver, sandbox_id: SandboxId) -> None:
    command = Command(argv=("/bin/sh", "-i"), has_input=True, terminal=TerminalSize())
    execution = await driver.exec(sandbox_id, command)
    assert (await anext(aiter(execution.output()))).data
    await execution.kill()
    await execution.wait()


async def _bare(line: list[str]) -> None:
    """As a program would that knows nothing of us: started, and waited for."""
    process = await asyncio.create_subprocess_exec(*line, stdin=subprocess.DEVNULL)
    assert await process.wait() == 0


async def _run(server: _Server, command: Command) -> None:
    agents = server.services.agents
    request = RunRequest(command=command, limits=agents.sandbox_limits, wish=Wish())
    steps = agents.runs.run(server.owner, server.project_id, None, request)
    async with aclosing(steps):
        [outcome] = [step async for step in steps if isinstance(step, CommandOutcome)]
    assert outcome.succeeded


if __name__ == "__main__":
    main()
