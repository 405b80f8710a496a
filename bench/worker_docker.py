"""What the Docker command line takes to start as many containers as the benchmark has sessions."""

import asyncio
import shutil
import time
from typing import Final

from tests.support.docker_engine import DockerEngine, running_docker_engine

__all__ = ["measure_docker_cli"]

_AT_ONCE: Final = 10  # as many as a machine claims runs


def measure_docker_cli(*, containers: int) -> dict[str, float]:
    with running_docker_engine() as engine:
        return {"hundred_docker_cli_s": asyncio.run(_started(engine, containers)) * 100 / containers}


async def _started(engine: DockerEngine, containers: int) -> float:
    """Seconds; each of them stays, as a session does, and says one word."""
    program = shutil.which("docker")
    assert program is not None, "The engine's command line is what we compare with: apt-get install docker.io"
    room = asyncio.Semaphore(_AT_ONCE)

    async def start() -> None:
        async with room:
            name = await _said(program, engine, "run", "-d", "--network", "none", engine.image, "sleep", "3600")
            await _said(program, engine, "exec", name, "echo", "Hello.")

    await start()
    began = time.perf_counter()
    await asyncio.gather(*(start() for _ in range(containers)))
    return time.perf_counter() - began


async def _said(program: str, engine: DockerEngine, *line: str) -> str:
    process = await asyncio.create_subprocess_exec(
        *(program, "-H", engine.address, *line), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()
    assert process.returncode == 0, line
    return said.decode().strip()
