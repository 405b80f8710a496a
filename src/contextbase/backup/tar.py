"""A backup as one tar file, written and read as a stream of known lengths."""

import os
import secrets
import tarfile
import time
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from contextbase.backup.ports import MANIFEST
from contextbase.durable import explained, flush, flush_folder, make_folder
from contextbase.errors import BlobTruncated, Conflict, Damaged
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import PIECE_SIZE, HashCheck, missing
from contextbase.threads import in_thread

__all__ = ["TarReader", "TarWriter"]

_BLOBS: Final = "blobs/objects/"
_SNAPSHOTS: Final = "snapshots/"


class TarWriter:
    at_once = 1  # it is one stream

    def __init__(self, target: Path, snapshot: str) -> None:
        self._target = target
        self._prefix = f"{_SNAPSHOTS}{snapshot}/"
        self._partial = target.with_name(f".{target.name}.{secrets.token_hex(4)}.part")
        self._file = -1

    @classmethod
    @asynccontextmanager
    async def begun(cls, target: Path, snapshot: str) -> AsyncIterator["TarWriter"]:
        """Raises `Conflict` when the file is there already. Unless it was finished, nothing is left after the block."""
        writer = cls(target, snapshot)
        await in_thread(writer._begin)
        try:
            yield writer
        finally:
            await in_thread(writer._tidy)

    async def add(self, name: str, content: bytes) -> None:
        await in_thread(self._write, _header(self._prefix + name, len(content)), content, _padding(len(content)))

    async def holds(self, content_hash: ContentHash, size: int) -> bool:
        del content_hash, size
        return False

    async def add_blob(self, content_hash: ContentHash, size: int, pieces: AsyncIterable[bytes]) -> None:
        """The length is promised before the first byte: what is missing of a damaged blob is filled up."""
        name = str(content_hash)
        await in_thread(self._write, _header(f"{_BLOBS}{name[:2]}/{name[2:]}", size))
        left = size
        check = HashCheck(content_hash, place="the blob store", promised=size)
        try:
            async for piece in pieces:
                await check.update_off_loop(piece)
                await in_thread(self._write, piece[:left])
                left -= min(left, len(piece))
            check.finish()
        except Damaged:
            for _ in range(left // PIECE_SIZE):
                await in_thread(self._write, bytes(PIECE_SIZE))
            await in_thread(self._write, bytes(left % PIECE_SIZE), _padding(size))
            raise
        await in_thread(self._write, _padding(size))

    async def finish(self, manifest: bytes) -> None:
        await self.add(MANIFEST, manifest)
        await in_thread(self._finish)

    def _begin(self) -> None:
        with explained(self._target.parent):
            make_folder(self._target.parent)
            self._refuse_to_replace()
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            self._file = os.open(self._partial, flags, 0o600)

    def _refuse_to_replace(self) -> None:
        if self._target.exists():
            raise Conflict(f"{self._target} is there already; a tar is written once. Choose another name.")

    def _write(self, *contents: bytes) -> None:
        with explained(self._target.parent):
            for content in contents:
                rest = memoryview(content)
                while rest:
                    rest = rest[os.write(self._file, rest) :]

    def _finish(self) -> None:
        self._write(bytes(2 * tarfile.BLOCKSIZE))
        with explained(self._target.parent):
            flush(self._file)
            self._refuse_to_replace()
            self._partial.rename(self._target)
            flush_folder(self._target.parent)

    def _tidy(self) -> None:
        os.close(self._file)
        with suppress(FileNotFoundError):
            self._partial.unlink()


@dataclass(frozen=True, slots=True)
class _Member:
    offset: int
    size: int


class TarReader:
    at_once = 8

    def __init__(self, path: Path, file: int, files: dict[str, _Member], blobs: dict[bytes, _Member]) -> None:
        self.place = str(path)
        self._path = path
        self._file = file
        self._files = files
        self._blobs = blobs

    @classmethod
    @asynccontextmanager
    async def opened(cls, path: Path) -> AsyncIterator["TarReader"]:
        reader = await in_thread(cls._open, path)
        try:
            yield reader
        finally:
            reader.close()

    @classmethod
    def _open(cls, path: Path) -> "TarReader":
        files: dict[str, _Member] = {}
        blobs: dict[bytes, _Member] = {}
        with explained(path):
            try:
                with tarfile.open(path, "r:") as tar:
                    while (member := tar.next()) is not None:
                        tar.members.clear()  # type: ignore[attr-defined]  # typeshed has it not; a large object for each
                        name, place = member.name.removeprefix("./"), _Member(member.offset_data, member.size)
                        if name.startswith(_BLOBS):
                            with suppress(ValueError):
                                blobs[bytes.fromhex(name.removeprefix(_BLOBS).replace("/", ""))] = place
                        else:
                            files[name] = place
            except tarfile.TarError as error:
                raise Damaged(
                    f"{path} is not a whole tar file ({error}): it was cut short or damaged. Use another backup."
                ) from error
            return cls(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC), files, blobs)

    def close(self) -> None:
        os.close(self._file)

    def snapshots(self) -> list[str]:
        end = f"/{MANIFEST}"
        return sorted(
            name.removeprefix(_SNAPSHOTS).removesuffix(end)
            for name in self._files
            if name.startswith(_SNAPSHOTS) and name.endswith(end)
        )

    async def read(self, snapshot: str, name: str) -> AsyncGenerator[bytes, None]:
        member = self._files.get(f"{_SNAPSHOTS}{snapshot}/{name}")
        if member is None:
            raise Damaged(f"The backup {self._path} has lost its file {name}. Use another backup.")
        async for piece in self._pieces(member):
            yield piece

    async def blob(self, content_hash: ContentHash) -> AsyncGenerator[bytes, None]:
        member = self._blobs.get(content_hash)
        if member is None:
            raise missing(content_hash, place=self.place)
        check = HashCheck(content_hash, place=self.place, promised=member.size)
        async for piece in self._pieces(member):
            await check.update_off_loop(piece)
            yield piece
        check.finish()

    async def _pieces(self, member: _Member) -> AsyncGenerator[bytes, None]:
        offset, end = member.offset, member.offset + member.size
        while offset < end:
            piece = await in_thread(self._read, offset, min(PIECE_SIZE, end - offset))
            if not piece:
                raise BlobTruncated(f"{self._path} was cut short. Use another backup.")
            offset += len(piece)
            yield piece

    def _read(self, offset: int, length: int) -> bytes:
        with explained(self._path):
            return os.pread(self._file, length, offset)


def _header(name: str, size: int) -> bytes:
    member = tarfile.TarInfo(name)
    member.size, member.mode, member.mtime = size, 0o600, int(time.time())
    return member.tobuf(tarfile.PAX_FORMAT)


def _padding(size: int) -> bytes:
    return bytes(-size % tarfile.BLOCKSIZE)
