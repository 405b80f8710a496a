"""Links by which a file is downloaded from the bucket itself, past this server."""

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Protocol

from contextbase.errors import Conflict
from contextbase.files.model import FileDetails
from contextbase.ids import Clock, ContentHash

__all__ = ["DownloadLink", "DownloadLinks", "LinkStore"]


class LinkStore(Protocol):
    """A blob store that can be read by others with a signed URL."""

    async def exists(self, content_hash: ContentHash) -> bool: ...

    async def presigned_get(self, content_hash: ContentHash, *, lifetime: timedelta) -> str:
        """A URL for anybody who has it, until the lifetime has passed; for this blob alone."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class DownloadLink:
    url: str
    expires_at: datetime


class DownloadLinks:
    def __init__(self, *, store: LinkStore | None, lifetime: timedelta, clock: Clock) -> None:
        """`store`: None: the operator has not allowed it, or blobs are in no bucket."""
        self._store = store
        self._lifetime = lifetime
        self._clock = clock

    async def make(self, file: FileDetails) -> DownloadLink:
        """For a file that the caller was shown just now. Raises `Conflict` where there can be none."""
        path, content_hash = file.entry.path, file.hash
        if content_hash is None:
            raise Conflict(f"{path} is a folder: download it as an archive.")
        if self._store is None:
            raise Conflict("This server gives no links to its bucket. Download the file from the server.")
        if not await self._store.exists(content_hash):
            raise Conflict(f"{path} is not in the bucket, as small files are. Download it from the server.")
        expires_at = self._clock.now() + self._lifetime
        return DownloadLink(
            url=await self._store.presigned_get(content_hash, lifetime=self._lifetime), expires_at=expires_at
        )
