"""Sees to it that a command does not fill the disk."""

import asyncio
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Final

__all__ = ["watch_disk"]

_PAUSE: Final = 0.1
_SMALLEST_STEP: Final = 1 << 20
_DEEPEST: Final = 200
"""Folders in each other that are looked into. Each of them costs a handle while those below are looked at."""


async def watch_disk(folder: Path, most: int, on_exceeded: Callable[[], None]) -> None:
    """Until it is cancelled, or has called `on_exceeded` once, because what was written below the folder since now is
    more than `most` bytes. Looking at a folder costs time, so it is done only when the disk has so much less room, and
    in a thread."""
    began = time.time()
    free = await asyncio.to_thread(_free, folder)
    allowed = most
    while True:
        await asyncio.sleep(_PAUSE)
        taken = free - await asyncio.to_thread(_free, folder)
        if taken <= allowed:
            continue
        written = await asyncio.to_thread(_written_since, began, folder, most)
        if written > most:
            on_exceeded()
            return
        allowed = taken + max(most - written, _SMALLEST_STEP)  # others write on this disk, too


def _free(folder: Path) -> int:
    status = os.statvfs(folder)
    return status.f_bfree * status.f_frsize


def _written_since(began: float, folder: Path, most: int) -> int:
    """At least so many bytes; the count ends when it is over the most. What hides where nobody looks is taken for too
    much."""
    try:
        return _seen_since(began, folder, most)
    except PermissionError:
        return most + 1


def _seen_since(began: float, folder: Path, most: int) -> int:
    written = 0
    deepest = len(folder.parts) + _DEEPEST
    # By handles: a link put in the way leads nowhere.
    for path, folders, names, place in os.fwalk(folder, onerror=_refuse_to_be_shut_out):
        if len(Path(path).parts) > deepest:
            return most + 1
        for name in (*folders, *names):
            try:
                status = os.stat(name, dir_fd=place, follow_symlinks=False)
            except FileNotFoundError:
                continue  # it is being worked in
            if status.st_ctime >= began:
                written += status.st_blocks * 512
        if written > most:
            break
    return written


def _refuse_to_be_shut_out(error: OSError) -> None:
    if isinstance(error, PermissionError):
        raise error
