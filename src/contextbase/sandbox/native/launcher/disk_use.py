"""How much was written below folders since a moment. Looking at a folder costs time, so it is done only when the disk
has that much less room."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

__all__ = ["DiskUse"]

_SMALLEST_STEP: Final = 1 << 20
_DEEPEST: Final = 200
"""Folders in each other that are looked into. Each of them costs a handle while those below are looked at."""


class DiskUse:
    """Of folders on one disk, from now on."""

    def __init__(self, folders: Sequence[Path], most: int) -> None:
        self._folders = folders
        self._most = most
        self._began = time.time()
        self._free = self._room()
        self._allowed = most

    def is_exceeded(self) -> bool:
        """Whether more than the most was written. Others write on this disk, too."""
        taken = self._free - self._room()
        if taken <= self._allowed:
            return False
        written = self._written()
        self._allowed = taken + max(self._most - written, _SMALLEST_STEP)
        return written > self._most

    def was_exceeded(self) -> bool:
        """The same by looking at the folders themselves: others may have freed room on this disk meanwhile."""
        return self._written() > self._most

    def _room(self) -> int:
        status = os.statvfs(self._folders[0])
        return status.f_bfree * status.f_frsize

    def _written(self) -> int:
        """At least so many bytes; the count ends when it is over the most. What hides where nobody looks is taken for
        too much."""
        written = 0
        try:
            for folder in self._folders:
                written += self._seen_in(folder, self._most - written)
        except PermissionError:
            return self._most + 1
        return written

    def _seen_in(self, folder: Path, most: int) -> int:
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
                if status.st_ctime >= self._began:
                    written += status.st_blocks * 512
            if written > most:
                break
        return written


def _refuse_to_be_shut_out(error: OSError) -> None:
    if isinstance(error, PermissionError):
        raise error
