"""What the disk must have kept before we say so, and its failures in words an operator can act on."""

import errno
import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from contextbase.errors import MachineProblem

__all__ = ["FULL", "explained", "flush", "flush_folder", "make_folder"]

FULL: Final = frozenset({errno.ENOSPC, errno.EDQUOT})
"""What the operating system says when a disk or a quota is full."""
_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS}


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Turn what the operating system says about files below `folder` into a `MachineProblem`."""
    try:
        yield
    except OSError as error:
        if error.errno in FULL:
            sentence = f"The disk that holds {folder} is full. Free some space there, then try again."
        elif error.errno in _REFUSED:
            sentence = (
                f"{folder} is not open to contextbase ({error.strerror}). Give the user it runs as read and write "
                "permission there, or choose another folder."
            )
        else:
            sentence = f"Working with files in {folder} failed ({error.strerror}). Check the folder and its disk."
        raise MachineProblem(sentence, folder=str(folder)) from error


def flush(descriptor: int) -> None:
    """Return when the file's or folder's data is on the disk itself."""
    if hasattr(fcntl, "F_FULLFSYNC"):  # macOS: fsync alone stops at the drive's own cache
        fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
    else:
        os.fsync(descriptor)


def flush_folder(folder: Path) -> None:
    """Return when the names in it are on the disk itself."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        flush(descriptor)
    finally:
        os.close(descriptor)


def make_folder(folder: Path) -> None:
    """Make a private folder that is there after a power cut, with whichever of its parents are missing."""
    if not folder.parent.is_dir():
        make_folder(folder.parent)
    folder.mkdir(mode=0o700, exist_ok=True)
    # Also when it was there: another process may have made it a moment ago and not have come this far yet.
    flush_folder(folder.parent)
