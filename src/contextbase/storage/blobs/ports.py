"""What a place that keeps blobs must do. One contract suite (tests/contracts) runs over every implementation."""

from collections.abc import AsyncGenerator, AsyncIterable
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from contextbase.ids import ContentHash

__all__ = ["BlobStore", "StoredBlob"]


@dataclass(frozen=True, kw_only=True, slots=True)
class StoredBlob:
    hash: ContentHash
    size: int
    stored_at: datetime | None = None  # when the bytes arrived; None where the store cannot tell


class BlobStore(Protocol):
    """Immutable bytes named by their sha256. Everything streams; nothing holds a whole blob in memory.

    Every method may raise `BlobStoreUnavailable` (try again), `BlobStoreDenied` or `BucketMissing` (the operator
    must act). Implementations do not retry; `RetryingBlobStore` wraps one that should.
    """

    async def put(self, content: AsyncIterable[bytes], *, expected: ContentHash | None = None) -> StoredBlob:
        """Store the content durably and return its name; when this returns, the bytes survive a power cut.

        Create-only: a blob that is there already is left as it is (something of another size under its name is
        damage, and is replaced), and two writers of the same content both succeed. With `expected`, content that
        hashes to anything else raises `BlobCorrupted` and stores nothing. If the stream fails, its exception passes
        through and nothing is stored. A cancelled put stores nothing or, when it was all but done, the whole blob.
        """
        ...

    def get(self, content_hash: ContentHash, *, start: int = 0, end: int | None = None) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to (not including) `end`, in pieces of at most 1 MiB. A reader that may stop
        early closes it (`contextlib.aclosing`): that frees the file or connection behind it.

        Raises `BlobMissing`, and `InvalidInput` for a range that is not 0 <= start <= end <= size. A whole read
        (no range) checks the hash as it goes: `BlobCorrupted`, or `BlobTruncated` where the store knows how long the
        blob was, after the last piece.
        """
        ...

    async def size(self, content_hash: ContentHash) -> int | None:
        """The blob's size, or None when it is not here."""
        ...

    async def exists(self, content_hash: ContentHash) -> bool: ...

    def list(self) -> AsyncGenerator[StoredBlob, None]:
        """Every blob here, in no particular order, without holding the list in memory. Leftovers of unfinished
        puts and foreign files are not blobs and are not listed."""
        ...

    async def delete(self, content_hash: ContentHash) -> bool:
        """Remove it; False when it was not there. Only GC and purge call this."""
        ...

    async def verify(self, content_hash: ContentHash) -> int:
        """Read it all and return its size; raises `BlobMissing`, `BlobTruncated` or `BlobCorrupted`."""
        ...
