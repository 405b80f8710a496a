"""Tests that run as root, and are about those who do not."""

import concurrent.futures.thread  # noqa: F401 - asyncio asks for it late, and it may lie where only root reads
import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["folder_of_no_root"]

_NOBODY = 65534


@contextmanager
def folder_of_no_root() -> Iterator[Path]:
    """An empty folder, and until the block ends this process is its owner's, who is not root."""
    was_root = os.geteuid() == 0
    with tempfile.TemporaryDirectory() as name:
        if was_root:
            os.chown(name, _NOBODY, _NOBODY)
            os.setegid(_NOBODY)
            os.seteuid(_NOBODY)
        try:
            yield Path(name)
        finally:
            if was_root:
                os.seteuid(0)
                os.setegid(0)
