"""Files of this machine on their way to the server and back."""

import os
import shutil
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from contextbase.errors import InvalidInput

__all__ = ["INLINE_BYTES", "local_file", "pieces_of", "write_file"]

INLINE_BYTES: Final = 1024 * 1024  # longer files are uploaded by themselves


@contextmanager
def local_file(name: str) -> Iterator[tuple[BinaryIO, int | None]]:
    """A file to read (- for standard input), and its size; None: it has none, as a pipe that is named."""
    if name == "-":
        # Read here, in the main thread: one that waits for input in the background cannot be interrupted.
        with tempfile.TemporaryFile() as spooled:
            shutil.copyfileobj(sys.stdin.buffer, spooled, INLINE_BYTES)
            size = spooled.tell()
            spooled.seek(0)
            yield spooled, size
        return
    try:
        with Path(name).open("rb") as opened:
            status = os.fstat(opened.fileno())
            yield opened, status.st_size if stat.S_ISREG(status.st_mode) else None
    except OSError as error:
        raise InvalidInput(f"{name} cannot be read: {error.strerror}.") from None


def pieces_of(opened: BinaryIO, advance: Callable[[int], None], start: bytes = b"") -> Iterator[bytes]:
    """What was read of a file already, and the rest of it."""
    piece = start or opened.read(INLINE_BYTES)
    while piece:
        yield piece
        advance(len(piece))  # the next one is asked for once this one is sent
        piece = opened.read(INLINE_BYTES)


def write_file(target: Path, pieces: Iterable[bytes]) -> None:
    """All of it or nothing: a file that is there already is replaced at the end."""
    try:
        with tempfile.NamedTemporaryFile(dir=target.parent, prefix=f".{target.name}.", delete=False) as file:
            try:
                for piece in pieces:
                    file.write(piece)
                Path(file.name).chmod(0o644)
                Path(file.name).replace(target)
            except BaseException:
                Path(file.name).unlink(missing_ok=True)
                raise
    except OSError as error:
        raise InvalidInput(f"{target} cannot be written: {error.strerror}.") from None
