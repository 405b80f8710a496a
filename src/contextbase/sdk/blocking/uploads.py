# Generated from aio/uploads.py by scripts/generate_blocking_sdk.py. Change that file, not this one.
"""Content of any size, in pieces."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.errors import InvalidInput
from contextbase.sdk.blocking.waiting import PIECES, Pieces, each_piece, in_thread

__all__ = ["Uploadable", "check_uploadable", "form_of", "pieces_of"]

Uploadable = bytes | Path | Pieces
"""Content of any size: bytes, a file, or pieces."""

_PIECE_BYTES: Final = 1024 * 1024


def check_uploadable(content: object) -> None:
    """Pieces are checked as they come; a text would be taken for pieces."""
    if isinstance(content, str) or not isinstance(content, (bytes, Path, *PIECES)):
        raise InvalidInput(f"upload(): content: bytes, a Path or pieces of bytes, not {type(content).__name__}.")


def pieces_of(content: Uploadable) -> Iterator[bytes]:
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        try:
            file = in_thread(content.open, "rb")
        except OSError as error:
            raise InvalidInput(f"{content} cannot be read: {error.strerror}.") from error
        with file:
            while piece := in_thread(file.read, _PIECE_BYTES):
                yield piece
    else:
        for given in each_piece(content):
            yield _piece(given)


def form_of(name: str, content: Uploadable) -> tuple[Iterator[bytes], str]:
    """A form with one file, in pieces, and its Content-Type."""
    if not name or not name.isprintable():
        raise InvalidInput(f"upload(): name: {name[:120]!r} is not a file's name.")
    boundary = uuid4().hex
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')

    def pieces() -> Iterator[bytes]:
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n\r\n'.encode()
        for piece in pieces_of(content):
            yield piece
        yield f"\r\n--{boundary}--\r\n".encode()

    return pieces(), f"multipart/form-data; boundary={boundary}"


def _piece(piece: object) -> bytes:
    if not isinstance(piece, bytes | bytearray | memoryview):
        raise InvalidInput(f"upload(): content: a piece must be bytes, not {type(piece).__name__}.")
    return bytes(piece)
