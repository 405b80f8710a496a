"""Puts the executor into a sandbox and starts it there, detached: it outlives whoever started it."""

import asyncio
from collections.abc import Mapping
from pathlib import PurePosixPath
from typing import Final

from contextbase.errors import MachineProblem, Unavailable
from contextbase.executor.packing import packed_executor
from contextbase.sandbox.model import Command, SandboxId
from contextbase.sandbox.ports import SandboxDriver

__all__ = ["SOCKETS", "start_executor"]

_FOLDERS: Final = ("/run/contextbase", "/tmp/contextbase-executor")  # noqa: S108 - inside; the first that can be made
SOCKETS: Final = tuple(PurePosixPath(folder) / "executor.sock" for folder in _FOLDERS)
"""Where it listens: one of these."""

_LONGEST_START: Final = 120.0
_OLDEST_PYTHON: Final = 3  # its exit code
_START: Final = """
import os, sys
if sys.version_info < (3, 11):
    sys.exit(3)
content = sys.stdin.buffer.read()
build, *folders = sys.argv[1:]
for folder in folders:
    try:
        os.makedirs(folder, 0o700, exist_ok=True)
        place = os.path.join(folder, build + ".pyz")
        with open(place + ".%d" % os.getpid(), "wb") as file:
            file.write(content)
        os.replace(file.name, place)
        break
    except OSError as error:
        problem = error
else:
    sys.exit("No folder for it: %s" % problem)
reading, writing = os.pipe()
if os.fork():
    os.close(writing)
    said = os.read(reading, 16)
    if said != b"running":
        with open(os.path.join(folder, "log"), "rb") as log:
            log.seek(max(0, os.fstat(log.fileno()).st_size - 1000))
            sys.exit(log.read().decode(errors="replace"))
    sys.exit(0)
os.setsid()
os.close(reading)
os.set_inheritable(writing, True)
log = os.open(os.path.join(folder, "log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
nothing = os.open(os.devnull, os.O_RDWR)
for number, target in enumerate((nothing, log, log)):
    os.dup2(target, number)
os.environ["CONTEXTBASE_READY"] = str(writing)
os.execv(sys.executable, [sys.executable, "-I", place, folder, build])
"""


async def start_executor(
    driver: SandboxDriver, sandbox_id: SandboxId, *, python: str, environment: Mapping[str, str]
) -> None:
    """Returns when it listens. Harmless when one does already. `MachineProblem` when this sandbox cannot run it."""
    packed = packed_executor()
    command = Command(
        argv=(python, "-I", "-S", "-c", _START, packed.build, *_FOLDERS),
        environment=environment,
        has_input=True,
        cwd=PurePosixPath("/"),
        timeout=_LONGEST_START,
    )
    execution = await driver.exec(sandbox_id, command)
    said = bytearray()

    async def listen() -> None:
        async for output in execution.output():
            said.extend(output.data[: 4096 - len(said)])

    listening = asyncio.create_task(listen())
    try:
        await execution.write(packed.content)
        await execution.end_input()
        await listening
        outcome = await execution.wait()
    finally:
        listening.cancel()
        await asyncio.gather(listening, return_exceptions=True)
        await execution.kill()
    if outcome.exit_code == _OLDEST_PYTHON:
        raise MachineProblem("The Python in this sandbox is older than 3.11: the executor needs a newer one.")
    if outcome.exit_code == 127:
        raise MachineProblem(f"There is no {python} in this sandbox: the executor needs Python 3.11 or newer.")
    if not outcome.succeeded:
        reason = said.decode(errors="replace").strip()[-500:]
        raise Unavailable(f"The executor did not start in sandbox {sandbox_id}: {reason or 'it said nothing'}")
