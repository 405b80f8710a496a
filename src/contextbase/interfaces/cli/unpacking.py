"""Tar files from the server, written to a folder of this machine."""

import io
import os
import shutil
import tarfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO

from contextbase.errors import InvalidInput, Unavailable

__all__ = ["any_name_inside", "unpack"]


def unpack(target: Path, pieces: Iterator[bytes], checked: Callable[[str], str]) -> int:
    """Into a new or empty folder. `checked` refuses names that must not be there. Returns how many files it wrote."""
    try:
        target.mkdir(parents=True, exist_ok=True)
        if any(target.iterdir()):
            raise InvalidInput(f"{target} is not empty. Name a new or empty folder.")
        with tarfile.open(fileobj=io.BufferedReader(_Pieces(pieces)), mode="r|") as archive:
            return sum(_unpack_entry(archive, entry, target, checked(entry.name)) for entry in archive)
    except tarfile.TarError as error:
        raise Unavailable("The download broke off. Try again, with another folder.") from error
    except OSError as error:
        raise InvalidInput(f"{error.filename or target} cannot be written: {error.strerror}.") from None


def any_name_inside(name: str) -> str:
    """For what a file system had: any name that leads to no other place."""
    if name.startswith("/") or any(part in ("", ".", "..") for part in name.split("/")):
        raise Unavailable(f"The archive has the entry {name[:200]!r}, which leads out of the folder.")
    return name


def _unpack_entry(archive: tarfile.TarFile, entry: tarfile.TarInfo, target: Path, path: str) -> int:
    place = target / path
    above = target
    for part in path.split("/")[:-1]:
        above /= part
        if above.is_symlink():
            raise Unavailable(f"The archive has an entry below the link {above}, so nothing more was written.")
    if entry.isdir():
        place.mkdir(parents=True, exist_ok=True)
        return 0
    place.parent.mkdir(parents=True, exist_ok=True)
    if entry.issym():
        place.symlink_to(entry.linkname)
        return 1
    content = archive.extractfile(entry)
    if content is None:
        raise Unavailable(f"The archive has {path}, which is neither a file, a folder nor a link.")
    with content, _created(place, 0o777 if entry.mode & 0o100 else 0o666) as file:
        shutil.copyfileobj(content, file, 1024 * 1024)
    os.utime(place, (entry.mtime, entry.mtime))
    return 1


def _created(place: Path, mode: int) -> BinaryIO:
    return os.fdopen(os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode), "wb")


class _Pieces(io.RawIOBase):
    """Pieces of bytes as a file that can be read once."""

    def __init__(self, pieces: Iterator[bytes]) -> None:
        self._pieces = pieces
        self._left = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "memoryview[int] | bytearray") -> int:  # type: ignore[override]  # what io really passes
        while not self._left:
            piece = next(self._pieces, None)
            if piece is None:
                return 0
            self._left = memoryview(piece)
        count = min(len(buffer), len(self._left))
        buffer[:count] = self._left[:count]
        self._left = self._left[count:]
        return count
