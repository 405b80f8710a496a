"""Which kind of archive a path means, and the files of a snapshot in it."""

import hashlib
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Final

from contextbase.audit.chain import AuditKey
from contextbase.backup.folder import BackupFolderReader, BackupFolderWriter
from contextbase.backup.manifest import Manifest, TableRecord, fingerprint
from contextbase.backup.ports import MANIFEST, ArchiveReader, BackupWriter
from contextbase.backup.tar import TarReader, TarWriter
from contextbase.durable import explained
from contextbase.errors import Damaged, NotFound
from contextbase.ids import ContentHash
from contextbase.threads import in_thread

__all__ = ["BLOB_LIST", "KEY_FILE", "PART_BYTES", "Parts", "Snapshot", "begun_archive", "manifests", "opened_archive"]

BLOB_LIST: Final = "blob-list"
KEY_FILE: Final = "audit.key"
PART_BYTES: Final = 8 * 1024 * 1024
_LARGEST_SMALL_FILE: Final = 256 * 1024 * 1024


def begun_archive(target: Path, snapshot: str) -> AbstractAsyncContextManager[BackupWriter]:
    """A new backup: a tar file if the name says so, else in a folder."""
    return TarWriter.begun(target, snapshot) if target.suffix == ".tar" else BackupFolderWriter.begun(target, snapshot)


@asynccontextmanager
async def opened_archive(source: Path) -> AsyncIterator[ArchiveReader]:
    if await in_thread(_is_folder, source):
        yield BackupFolderReader(source)
        return
    async with TarReader.opened(source) as reader:
        yield reader


async def manifests(reader: ArchiveReader) -> list[Manifest]:
    """Of every finished backup in the archive, oldest first."""
    return [(await Snapshot.of(reader, name)).manifest for name in reader.snapshots()]


class Parts:
    """Collects what comes in pieces of any length and passes it on in parts of a size that fits into memory."""

    def __init__(self, writer: BackupWriter, name: str) -> None:
        self._writer = writer
        self._name = name
        self._buffer = bytearray()
        self._digest = hashlib.sha256()
        self.count = 0
        self.bytes = 0

    async def add(self, piece: bytes) -> None:
        self._buffer += piece
        if len(self._buffer) >= PART_BYTES:
            await self._pass_on()

    async def finish(self) -> str:
        """The sha256 of it all."""
        if self._buffer or not self.count:
            await self._pass_on()
        return self._digest.hexdigest()

    async def _pass_on(self) -> None:
        part = bytes(self._buffer)
        self._buffer.clear()
        await in_thread(self._digest.update, part)
        await self._writer.add(part_name(self._name, self.count), part)
        self.count += 1
        self.bytes += len(part)


class Snapshot:
    """One finished backup in an archive."""

    def __init__(self, reader: ArchiveReader, manifest: Manifest) -> None:
        self.reader = reader
        self.manifest = manifest

    @classmethod
    async def of(cls, reader: ArchiveReader, name: str | None = None) -> "Snapshot":
        """By name; None: the newest. Raises `NotFound`."""
        names = reader.snapshots()
        if not names:
            raise NotFound(
                f"{reader.place} holds no finished backup: it is something else, or was cut short. Choose another."
            )
        if name is not None and name not in names:
            raise NotFound(f"{reader.place} has no backup '{name[:120]}'. It has: {', '.join(names)}.")
        chosen = name or names[-1]
        text = await _small_file(reader, chosen, MANIFEST)
        return cls(reader, Manifest.from_json(text, place=f"The manifest of {chosen} in {reader.place}"))

    async def audit_key(self) -> AuditKey:
        text = await _small_file(self.reader, self.manifest.snapshot, KEY_FILE)
        try:
            key = AuditKey(bytes.fromhex(text.decode("ascii")))
        except ValueError:
            key = AuditKey(b"")
        if fingerprint(key) != self.manifest.audit_key:
            raise Damaged(f"The audit key in {self.reader.place} is not the one the backup was made with.")
        return key

    def table(self, table: TableRecord) -> AsyncGenerator[bytes, None]:
        """A table's bytes; raises `Damaged` at the end if they are not what was written."""
        return self._joined(f"tables/{table.name}", table.parts, table.sha256, what=f"the table '{table.name}'")

    async def blobs(self) -> list[tuple[ContentHash, int]]:
        """The blobs it needs that are in no table, with their sizes."""
        record = self.manifest.blobs
        pieces = self._joined(BLOB_LIST, record.parts, record.sha256, what="the list of blobs")
        text = b"".join([piece async for piece in pieces])
        lines = (line.split() for line in text.decode().splitlines())
        damaged = set(self.manifest.damaged)
        return [(ContentHash(bytes.fromhex(name)), int(size)) for name, size in lines if name not in damaged]

    async def _joined(self, name: str, parts: int, sha256: str, *, what: str) -> AsyncGenerator[bytes, None]:
        digest = hashlib.sha256()
        for number in range(parts):
            async for piece in self.reader.read(self.manifest.snapshot, part_name(name, number)):
                await in_thread(digest.update, piece)
                yield piece
        if digest.hexdigest() != sha256:
            raise Damaged(
                f"In {self.reader.place}, {what} of the backup {self.manifest.snapshot} is not what was written: its "
                "sha256 differs. Use another backup."
            )


def _is_folder(source: Path) -> bool:
    with explained(source):
        if not source.exists():
            raise NotFound(f"There is nothing at {source}; name the folder or the tar file of the backup.")
        return source.is_dir()


def part_name(name: str, number: int) -> str:
    return f"{name}.{number:04d}"


async def _small_file(reader: ArchiveReader, snapshot: str, name: str) -> bytes:
    content = bytearray()
    async for piece in reader.read(snapshot, name):
        content += piece
        if len(content) > _LARGEST_SMALL_FILE:
            raise Damaged(f"The file {name} of {snapshot} in {reader.place} is far too long. Use another backup.")
    return bytes(content)
