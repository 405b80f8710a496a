"""Content of any size, in pieces."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.errors import InvalidInput
from contextbase.sdk.aio.waiting import PIECES, Pieces, each_piece, in_thread

__all__ = ["AsyncUploadable", "check_uploadable", "form_of", "pieces_of"]

AsyncUploadable = bytes | Path | Pieces
"""Content of any size: bytes, a file, or pieces."""

_PIECE_BYTES: Final = 1024 * 1024


def check_uploadable(content: object) -> None:
    """Pieces are checked as they come; a text would be taken for pieces."""
    if isinstance(content, str) or not isinstance(content, (bytes, Path, *PIECES)):
        raise InvalidInput(f"upload(): content: bytes, a Path or pieces of bytes, not {type(content).__name__}.")


async def pieces_of(content: AsyncUploadable) -> AsyncIterator[bytes]:
    if isinstance(content, bytes):
        yield content
    elif isinstance(content, Path):
        try:
            file = await in_thread(content.open, "rb")
        except OSError as error:
            raise InvalidInput(f"{content} cannot be read: {error.strerror}.") from error
        with file:
            while piece := await in_thread(file.read, _PIECE_BYTES):
                yield piece
    else:
        async for given in each_piece(content):
            yield _piece(given)


def form_of(name: str, content: AsyncUploadable) -> tuple[AsyncIterator[bytes], str]:
    """A form with one file, in pieces, and its Content-Type."""
    if not name or not name.isprintable():
        raise InvalidInput(f"upload(): name: {name[:120]!r} is not a file's name.")
    boundary = uuid4().hex
    quoted = name.replace("\\", "\\\\").replace('"', '\\"')

    async def pieces() -> AsyncIterator[bytes]:
        yield f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{quoted}"\r\n\r\n'.encode()
        async for piece in pieces_of(content):
            yield piece
        yield f"\r\n--{boundary}--\r\n".encode()

    return pieces(), f"multipart/form-data; boundary={boundary}"


def _piece(piece: object) -> bytes:
    if not isinstance(piece, bytes | bytearray | memoryview):
        raise InvalidInput(f"upload(): content: a piece must be bytes, not {type(piece).__name__}.")
    return bytes(piece)
