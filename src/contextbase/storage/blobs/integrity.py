"""What every store checks alike: ranges on the way in, hashes on the way out."""

import hashlib
from collections.abc import AsyncIterable
from typing import Final

from contextbase.errors import BlobCorrupted, BlobMissing, BlobTruncated, InvalidInput
from contextbase.ids import ContentHash
from contextbase.threads import in_thread

__all__ = ["PIECE_SIZE", "HashCheck", "check_expected", "hash_of", "length_of", "missing", "range_end"]

PIECE_SIZE: Final = 1024 * 1024
_WORTH_A_THREAD: Final = 64 * 1024  # below this, hashing takes less time than the way to a thread and back


def range_end(*, start: int, end: int | None, size: int) -> int:
    """Where the asked range ends; `InvalidInput` unless 0 <= start <= end <= size."""
    stop = size if end is None else end
    if not 0 <= start <= stop <= size:
        asked = f"{start} to {'the end' if end is None else end}"
        raise InvalidInput(f"The range {asked} is not within the blob's {size} bytes.", start=start, end=end, size=size)
    return stop


def missing(content_hash: ContentHash, *, place: str) -> BlobMissing:
    name = str(content_hash)
    return BlobMissing(f"There is no blob {name} in {place}. Store the same content again, or restore it.", hash=name)


def check_expected(found: ContentHash, expected: ContentHash | None) -> None:
    """`BlobCorrupted` when content on its way in is not what its sender announced."""
    if expected is not None and found != expected:
        raise BlobCorrupted(
            f"The content hashes to {found}, not to {expected} as announced; nothing was stored. Send it again.",
            expected=str(expected),
            found=str(found),
        )


async def hash_of(content: bytes) -> ContentHash:
    """Its hash, without holding up the event loop."""
    return ContentHash.of(content) if len(content) < _WORTH_A_THREAD else await in_thread(ContentHash.of, content)


class HashCheck:
    """Follows a whole read piece by piece; `finish` says whether it was the blob that was asked for."""

    def __init__(self, content_hash: ContentHash, *, place: str, promised: int | None = None) -> None:
        self._content_hash = content_hash
        self._place = place  # for messages: where the bytes come from
        self._promised = promised
        self._received = 0
        self._digest = hashlib.sha256()

    def update(self, piece: bytes) -> None:
        self._digest.update(piece)
        self._received += len(piece)

    async def update_off_loop(self, piece: bytes) -> None:
        if len(piece) < _WORTH_A_THREAD:
            self.update(piece)
        else:
            await in_thread(self.update, piece)

    def finish(self) -> None:
        name = str(self._content_hash)
        if self._promised is not None and self._received < self._promised:
            raise BlobTruncated(
                f"The blob {name} in {self._place} has {self._received} of its {self._promised} bytes. "
                "Restore it from a backup, or store the same content again.",
                hash=name,
                size=self._received,
                promised=self._promised,
            )
        if self._digest.digest() != self._content_hash:
            raise BlobCorrupted(
                f"The {self._received} bytes kept as blob {name} in {self._place} do not hash to that name. "
                "Restore it from a backup.",
                hash=name,
                found=self._digest.hexdigest(),
                size=self._received,
            )


async def length_of(pieces: AsyncIterable[bytes]) -> int:
    """Read to the end, keep nothing, return how many bytes there were."""
    length = 0
    async for piece in pieces:
        length += len(piece)
    return length
