"""Reads a whole backup back: every byte against its hash, and that nothing it needs is missing from it."""

from collections.abc import AsyncIterator, Awaitable
from contextlib import aclosing
from pathlib import Path
from typing import Final

from contextbase.backup.archive import Snapshot, opened_archive
from contextbase.backup.manifest import TableRecord
from contextbase.backup.model import BackupProgress, BlobProgress, OnProgress, Verified, each
from contextbase.backup.rows import CopyRows, Row
from contextbase.errors import BlobMissing, Damaged
from contextbase.ids import ContentHash
from contextbase.storage.blobs.integrity import length_of

__all__ = ["verify_backup"]

_NAMING_COLUMNS: Final = ("content_hash", "sent_hash")


async def verify_backup(
    source: Path, *, snapshot: str | None = None, on_progress: OnProgress = lambda _: None
) -> Verified:
    """Check a backup (the newest, or one by name) without a database. Memory grows with the number of blobs, about
    200 bytes for each."""
    async with opened_archive(source) as reader:
        chosen = await Snapshot.of(reader, snapshot)
        checking = _Checking(chosen, on_progress)
        await checking.run()
    return Verified(manifest=chosen.manifest, problems=tuple(checking.problems))


class _Checking:
    def __init__(self, snapshot: Snapshot, on_progress: OnProgress) -> None:
        self._snapshot = snapshot
        self._manifest = snapshot.manifest
        self._on_progress = on_progress
        self._blob_progress = BlobProgress(on_progress, total=snapshot.manifest.blobs.bytes)
        self._done = 0
        self.problems: list[str] = []

    async def run(self) -> None:
        await self._try(self._snapshot.audit_key())
        whole = [table.name for table in self._manifest.tables if await self._table_is_whole(table)]
        self.problems += [
            f"The blob {name} was damaged or missing already when the backup was made."
            for name in self._manifest.damaged
        ]
        try:
            listed = dict(await self._snapshot.blobs())
        except Damaged as error:
            self.problems.append(error.message)
            return
        if len(whole) == len(self._manifest.tables):
            await self._check_names(listed)
            await self._check_anchors()
        await each(listed, self._check_blob, at_once=self._snapshot.reader.at_once)

    async def _table_is_whole(self, table: TableRecord) -> bool:
        before = len(self.problems)
        await self._try(self._read_through(table))
        return len(self.problems) == before

    async def _read_through(self, table: TableRecord) -> None:
        async with aclosing(self._snapshot.table(table)) as pieces:
            async for piece in pieces:
                self._done += len(piece)
                self._on_progress(BackupProgress(stage="tables", done=self._done, total=self._manifest.table_bytes))

    async def _check_names(self, listed: dict[ContentHash, int]) -> None:
        """Every content that a row names is recorded, and its bytes are in a table or listed."""
        recorded: dict[bytes, bool] = {}  # whether it has bytes
        async for row in self._columns("blobs", "hash", "live", "purged_at"):
            recorded[row[0] or b""] = row[1] == b"\x01" and row[2] is None
        kept = {row[0] async for row in self._columns("blob_contents", "hash")} | set(listed)
        kept |= {bytes.fromhex(name) for name in self._manifest.damaged}  # told already
        lost = [name for name, has_bytes in recorded.items() if has_bytes and name not in kept]
        self.problems += [f"The blob {name.hex()} is recorded, but its bytes are not in the backup." for name in lost]
        for table in self._manifest.tables:
            for column in set(_NAMING_COLUMNS) & set(table.columns):
                async for (name,) in self._columns(table.name, column):
                    if name is not None and name not in recorded:
                        self.problems.append(f"The table '{table.name}' names the blob {name.hex()}, which is unknown.")

    async def _check_anchors(self) -> None:
        heads = {row[0]: row[1:] async for row in self._columns("audit_heads", "chain", "number", "mac")}
        for anchor in self._manifest.audit_anchors:
            if heads.get(anchor.chain.bytes) != (anchor.number.to_bytes(8, "big"), bytes.fromhex(anchor.mac)):
                self.problems.append(f"The audit chain {anchor.chain} does not end where the manifest says.")

    async def _check_blob(self, content_hash: ContentHash) -> None:
        try:
            await length_of(self._blob_progress.counted(self._snapshot.reader.blob(content_hash)))
        except BlobMissing:
            self.problems.append(f"The blob {content_hash} is missing from the backup.")
        except Damaged:
            self.problems.append(
                f"The blob {content_hash} in the backup does not hash to its name. If this is a folder, remove that "
                "file: the next backup stores it again."
            )

    async def _columns(self, table_name: str, *names: str) -> AsyncIterator[Row]:
        """Some columns of a table that was found whole."""
        table = self._manifest.table(table_name)
        wanted = [table.columns.index(name) for name in names]
        rows = CopyRows()
        async with aclosing(self._snapshot.table(table)) as pieces:
            async for piece in pieces:
                for row in rows.feed(piece):
                    yield tuple(row[index] for index in wanted)
        rows.finish()

    async def _try(self, check: Awaitable[object]) -> None:
        try:
            await check
        except Damaged as error:
            self.problems.append(error.message)
