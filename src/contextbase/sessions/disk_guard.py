"""Sees to it that a run in a detached executor does not fill the disk: nobody else outside watches it."""

import asyncio
import contextlib
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from contextbase.errors import ContextbaseError
from contextbase.sandbox.disk import watch_disk
from contextbase.sandbox.model import SandboxId
from contextbase.sandbox.ports import SandboxDriver
from contextbase.sessions.executor_link import ExecutorLink

__all__ = ["guard_disk"]

_PATIENCE: Final = 45.0  # seconds that the executor has to end the run
_PAUSE: Final = 0.5


async def guard_disk(
    link: ExecutorLink, driver: SandboxDriver, sandbox_id: SandboxId, *, folders: Sequence[Path], most: int
) -> None:
    """Until it is cancelled, or more than `most` bytes were written below one of the folders since now. Then the run is
    ended, and if it does not end, the sandbox is stopped: an executor is inside and may not do as it is told."""
    exceeded = asyncio.Event()
    watching = [asyncio.create_task(watch_disk(folder, most, exceeded.set)) for folder in folders]
    try:
        await exceeded.wait()
    finally:
        for task in watching:
            task.cancel()
        await asyncio.gather(*watching, return_exceptions=True)
    with contextlib.suppress(ContextbaseError, TimeoutError):
        async with asyncio.timeout(_PATIENCE):
            await link.call("POST", "/cancel", {"reason": "disk_limit"})
            while (await link.call("GET", "/status")).json().get("state") != "idle":  # noqa: ASYNC110 - another process
                await asyncio.sleep(_PAUSE)
            return
    await driver.stop(sandbox_id)
