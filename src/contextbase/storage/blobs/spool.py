"""Content of unknown hash and length, read once into a temporary file so that it can be sent on by name."""

import hashlib
import os
import time
from collections.abc import AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import uuid4

from contextbase.durable import explained, make_folder
from contextbase.errors import MachineProblem
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import PIECE_SIZE, check_expected, hash_of
from contextbase.threads import WriteBehind, in_thread

__all__ = ["SpoolFolder", "Spooled"]

_SUFFIX: Final = ".part"


@dataclass(frozen=True, kw_only=True, slots=True)
class Spooled:
    """Content read to its end: its name and size are known, and it can be iterated again and again."""

    hash: ContentHash
    size: int
    held: bytes | Path  # short content stays in memory

    @property
    def file(self) -> Path:
        """Its file, for the user of a spool folder that keeps nothing in memory."""
        if isinstance(self.held, bytes):
            raise TypeError("This content is short and stays in memory; it has no file.")
        return self.held

    def is_file_in(self, folder: Path) -> bool:
        return isinstance(self.held, Path) and self.held.parent == folder

    async def __aiter__(self) -> AsyncIterator[bytes]:
        if isinstance(self.held, bytes):
            for offset in range(0, self.size, PIECE_SIZE):
                yield self.held[offset : offset + PIECE_SIZE]
            return
        offset = 0
        while offset < self.size:
            piece = await in_thread(_read, self.held, offset)
            if not piece:
                raise MachineProblem(f"The temporary file {self.held} was cut short by another program. Try again.")
            offset += len(piece)
            yield piece


class SpoolFolder:
    """Where temporary files live. They go when their use ends; a killed process leaves some, for `remove_stale`."""

    def __init__(self, folder: Path, *, memory_limit: int = PIECE_SIZE) -> None:
        """Content shorter than `memory_limit` never touches the disk; 0 writes a file for all."""
        self._folder = folder
        self._memory_limit = min(memory_limit, PIECE_SIZE)

    @asynccontextmanager
    async def spooled(
        self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None, reuse: bool = True
    ) -> AsyncIterator[Spooled]:
        """The content, spooled until the block ends; what is a `Spooled` already is not copied again.

        Content that does not hash to `expected` raises `BlobCorrupted`. With `reuse=False` the content is always in a
        file of this folder, for a caller that will link it elsewhere.
        """
        if isinstance(content, Spooled) and (reuse or content.is_file_in(self._folder)):
            check_expected(content.hash, expected)
            yield content
            return
        file = _TemporaryFile(self._folder)
        try:
            buffer = bytearray()
            async with WriteBehind() as hashing, WriteBehind() as writing:
                async for piece in content:
                    for offset in range(0, len(piece), PIECE_SIZE):
                        buffer += memoryview(piece)[offset : offset + PIECE_SIZE]
                        if len(buffer) >= PIECE_SIZE:
                            await hashing.start(file.hash_more, buffer)
                            await writing.start(file.write, buffer)
                            buffer = bytearray()
            if not file.made and len(buffer) < self._memory_limit:
                held = bytes(buffer)
                spooled = Spooled(hash=await hash_of(held), size=len(held), held=held)
            else:
                spooled = await in_thread(file.finish, buffer)
            check_expected(spooled.hash, expected)
            yield spooled
        finally:
            if file.made:
                await in_thread(file.discard)

    async def remove_stale(self, *, older_than: timedelta = timedelta(days=1)) -> int:
        """Remove what killed processes left here; returns how many files. A put in progress keeps its file fresh."""
        return await in_thread(self._remove_stale, older_than.total_seconds())

    def _remove_stale(self, seconds: float) -> int:
        removed = 0
        with explained(self._folder):
            if not self._folder.is_dir():
                return 0
            with os.scandir(self._folder) as entries:
                for entry in entries:
                    if not entry.name.endswith(_SUFFIX) or not entry.is_file(follow_symlinks=False):
                        continue
                    try:
                        if time.time() - entry.stat(follow_symlinks=False).st_mtime > seconds:
                            Path(entry.path).unlink()
                            removed += 1
                    except FileNotFoundError:
                        continue  # its put ended just now
        return removed


class _TemporaryFile:
    """Made at the first write. What is written must be given to `hash_more` too, in another thread if you like. Every
    method blocks."""

    def __init__(self, folder: Path) -> None:
        self.made = False
        self._size = 0
        self._folder = folder
        self._path = folder / f"{uuid4().hex}{_SUFFIX}"
        self._descriptor = -1
        self._digest = hashlib.sha256()

    def write(self, data: bytearray) -> None:
        with explained(self._folder):
            if not self.made:
                self._descriptor = self._create()
                self.made = True
            rest = memoryview(data)
            while rest:
                rest = rest[os.write(self._descriptor, rest) :]
            self._size += len(data)

    def hash_more(self, data: bytearray) -> None:
        self._digest.update(data)

    def finish(self, data: bytearray) -> Spooled:
        self.hash_more(data)
        self.write(data)
        self._close()
        return Spooled(hash=ContentHash(self._digest.digest()), size=self._size, held=self._path)

    def discard(self) -> None:
        self._close()
        with explained(self._folder):
            self._path.unlink(missing_ok=True)

    def _create(self) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(self._path, flags, 0o600)
        except FileNotFoundError:
            make_folder(self._folder)
            return os.open(self._path, flags, 0o600)

    def _close(self) -> None:
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor != -1:
            os.close(descriptor)


def _read(path: Path, offset: int) -> bytes:
    with explained(path.parent):
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        try:
            return os.pread(descriptor, PIECE_SIZE, offset)
        finally:
            os.close(descriptor)
