"""A place that holds backups: a folder, or one tar file. One test suite runs over both.

Both have the same files in it, so that an unpacked tar is a backup folder:

    blobs/objects/ab/cdef…             blobs by their sha256, shared by all snapshots
    snapshots/NAME/tables/TABLE.0000…  PostgreSQL's binary COPY of each table, in parts
    snapshots/NAME/blob-list.0000…     the list of blobs that are not in a table: hash and size in each line
    snapshots/NAME/audit.key           0600
    snapshots/NAME/manifest.json       written last
"""

from collections.abc import AsyncGenerator, AsyncIterable
from typing import Final, Protocol

from contextbase.ids import ContentHash

__all__ = ["MANIFEST", "ArchiveReader", "BackupWriter"]

MANIFEST: Final = "manifest.json"


class BackupWriter(Protocol):
    """One backup in the making. Every method raises `MachineProblem` when the disk is full or closed to us."""

    at_once: int  # how many blobs it takes at a time

    async def add(self, name: str, content: bytes) -> None:
        """Add a file to this backup's snapshot."""
        ...

    async def holds(self, content_hash: ContentHash, size: int) -> bool:
        """Whether an earlier backup left this blob here."""
        ...

    async def add_blob(self, content_hash: ContentHash, size: int, pieces: AsyncIterable[bytes]) -> None:
        """Add a blob; raises `Damaged` when the pieces are not that blob, which is then not in the archive."""
        ...

    async def finish(self, manifest: bytes) -> None:
        """Make all of it durable and the manifest appear: from now on it counts as a backup."""
        ...


class ArchiveReader(Protocol):
    """Every method raises `MachineProblem` when the place cannot be read."""

    place: str  # for messages
    at_once: int

    def snapshots(self) -> list[str]:
        """The names of the backups that were finished, oldest first."""
        ...

    def read(self, snapshot: str, name: str) -> AsyncGenerator[bytes, None]:
        """A file of a snapshot, in pieces; raises `Damaged` when it is not there or shorter than it was."""
        ...

    def blob(self, content_hash: ContentHash) -> AsyncGenerator[bytes, None]:
        """Its bytes; raises `Damaged`, after the last piece, when they do not hash to its name."""
        ...
