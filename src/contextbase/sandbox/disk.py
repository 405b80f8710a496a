"""Sees to it that a command does not fill the disk."""

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Final

from contextbase.sandbox.native.launcher.disk_use import DiskUse

__all__ = ["watch_disk"]

_PAUSE: Final = 0.1


async def watch_disk(folder: Path, most: int, on_exceeded: Callable[[], None]) -> None:
    """Until it is cancelled, or has called `on_exceeded` once, because what was written below the folder since now is
    more than `most` bytes."""
    use = await asyncio.to_thread(DiskUse, [folder], most)
    while True:
        await asyncio.sleep(_PAUSE)
        if await asyncio.to_thread(use.is_exceeded):
            on_exceeded()
            return
