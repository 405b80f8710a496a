"""Backups in a folder: each is a folder of its own, and all share the blobs, so that the next one adds what is new."""

import asyncio
import os
import shutil
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final

from contextbase.backup.ports import MANIFEST
from contextbase.data_folder import write_private
from contextbase.durable import explained, flush, flush_folder, make_folder
from contextbase.errors import Conflict, Damaged
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import PIECE_SIZE
from contextbase.storage.blobs.local import LocalBlobStore
from contextbase.storage.blobs.spool import SpoolFolder
from contextbase.threads import in_thread

__all__ = ["BackupFolderReader", "BackupFolderWriter"]

_SNAPSHOTS: Final = "snapshots"
_AT_ONCE: Final = 8


class BackupFolderWriter:
    at_once = _AT_ONCE

    def __init__(self, root: Path, snapshot: str) -> None:
        self._root = root
        self._folder = root / _SNAPSHOTS / snapshot
        self._blobs = LocalBlobStore(root / "blobs")

    @classmethod
    @asynccontextmanager
    async def begun(cls, root: Path, snapshot: str) -> AsyncIterator["BackupFolderWriter"]:
        """Raises `Conflict` for a folder with other things in it. What was not finished goes when the block ends; the
        blobs it brought stay, for the next one."""
        writer = cls(root, snapshot)
        await in_thread(writer._begin)
        await SpoolFolder(root / "blobs" / "tmp").remove_stale()
        try:
            yield writer
        finally:
            await in_thread(writer._tidy)

    async def add(self, name: str, content: bytes) -> None:
        await in_thread(self._add, name, content)

    async def holds(self, content_hash: ContentHash, size: int) -> bool:
        return await self._blobs.size(content_hash) == size

    async def add_blob(self, content_hash: ContentHash, size: int, pieces: AsyncIterable[bytes]) -> None:
        del size  # the hash says it all
        await self._blobs.put(pieces, expected=content_hash)

    async def finish(self, manifest: bytes) -> None:
        await in_thread(self._finish, manifest)

    def _begin(self) -> None:
        with explained(self._root):
            if self._root.exists() and not (self._root / _SNAPSHOTS).is_dir() and any(self._root.iterdir()):
                raise Conflict(
                    f"{self._root} holds other things than backups. Choose a new or empty folder, or one that backups "
                    "are in already."
                )
            make_folder(self._folder / "tables")

    def _add(self, name: str, content: bytes) -> None:
        with explained(self._root):
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            file = os.open(self._folder / name, flags, 0o600)
            try:
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(file, rest) :]
                flush(file)
            finally:
                os.close(file)

    def _finish(self, manifest: bytes) -> None:
        with explained(self._root):
            for folder in (self._folder / "tables", self._folder):
                flush_folder(folder)
        write_private(self._folder / MANIFEST, manifest.decode())

    def _tidy(self) -> None:
        if not (self._folder / MANIFEST).exists():
            shutil.rmtree(self._folder, ignore_errors=True)


class BackupFolderReader:
    at_once = _AT_ONCE

    def __init__(self, root: Path) -> None:
        self.place = str(root)
        self._root = root
        self._blobs = LocalBlobStore(root / "blobs")

    def snapshots(self) -> list[str]:
        folder = self._root / _SNAPSHOTS
        with explained(self._root):
            if not folder.is_dir():
                return []
            return sorted(entry.name for entry in folder.iterdir() if (entry / MANIFEST).is_file())

    async def read(self, snapshot: str, name: str) -> AsyncGenerator[bytes, None]:
        path = self._root / _SNAPSHOTS / snapshot / name
        with explained(self._root):
            try:
                file = await asyncio.to_thread(path.open, "rb", buffering=0)
            except FileNotFoundError:
                raise Damaged(f"The backup has lost its file {path}. Use another backup.") from None
        with file:
            while piece := await in_thread(_next_piece, file.fileno(), self._root):
                yield piece

    def blob(self, content_hash: ContentHash) -> AsyncGenerator[bytes, None]:
        return self._blobs.get(content_hash)


def _next_piece(file: int, root: Path) -> bytes:
    with explained(root):
        return os.read(file, PIECE_SIZE)
