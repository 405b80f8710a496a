"""The figures of Docker sandboxes, with a real engine in a folder of its own. `exec` runs `true` in a container that
runs already, through our driver and, turn by turn with it, through the engine's own command line; medians."""

import asyncio
import os
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar
from uuid import uuid4

import uvloop
from tests.support.docker_engine import DockerEngine, running_docker_engine

from contextbase.sandbox.docker import DockerDriver
from contextbase.sandbox.model import Command, SandboxId, SandboxSpec
from contextbase.sandbox.ports import Execution
from contextbase.workspaces.model import Owner

__all__ = ["measure_docker"]

_AGENT = Owner(uid=61184, gid=61184)
_TRUE = Command(argv=("true",))

Result = TypeVar("Result")


def measure_docker(rounds: int) -> dict[str, float]:
    with running_docker_engine() as engine, tempfile.TemporaryDirectory() as folder:
        os.chown(folder, _AGENT.uid, _AGENT.gid)
        return uvloop.run(_measure(engine, Path(folder), rounds))


async def _measure(engine: DockerEngine, folder: Path, rounds: int) -> dict[str, float]:
    driver = DockerDriver(node="bench", owner=_AGENT, image=engine.image, address=engine.address)
    times: defaultdict[str, list[float]] = defaultdict(list)

    async def timed(name: str, work: Awaitable[Result]) -> Result:
        began = time.perf_counter()
        result = await work
        times[name].append(1000 * (time.perf_counter() - began))
        return result

    async def finished(execution: Awaitable[Execution]) -> None:
        assert (await (await execution).wait()).succeeded

    spec = SandboxSpec(id=SandboxId(uuid4().hex), folder=folder)
    await driver.create(spec)
    await driver.start(spec.id)
    try:
        for _ in range(rounds):
            await timed("docker_exec_ms", finished(driver.exec(spec.id, _TRUE)))
            await timed("docker_cli_exec_ms", _by_command_line(engine, f"contextbase-bench-{spec.id}"))
    finally:
        await driver.remove(spec.id)
        await driver.close()
    return {name: round(statistics.median(values), 1) for name, values in times.items()}


async def _by_command_line(engine: DockerEngine, container: str) -> None:
    program = shutil.which("docker")
    assert program is not None, "The engine's command line is what we compare with: apt-get install docker.io"
    process = await asyncio.create_subprocess_exec(program, "-H", engine.address, "exec", container, "true")
    assert await process.wait() == 0
