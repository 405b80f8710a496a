"""What blobs hold, many at a time."""

import logging
from collections.abc import Sequence

from contextbase.db.database import Database
from contextbase.errors import ContentPurged, Damaged
from contextbase.gate.repository import GateRepository
from contextbase.ids import ContentHash
from contextbase.search.model import SkipReason
from contextbase.storage.blobs.catalog import BlobCatalog

__all__ = ["BlobContents"]

_log = logging.getLogger(__name__)


class BlobContents:
    def __init__(self, *, database: Database, repository: GateRepository, catalog: BlobCatalog) -> None:
        self._database = database
        self._repository = repository
        self._catalog = catalog

    async def read(self, names: Sequence[ContentHash]) -> list[bytes | SkipReason | None]:
        """Whole contents, so the caller bounds how many; None for one that was purged."""
        async with self._database.connection() as connection:
            loaded = await self._repository.inline_contents(connection, list(names))
        return [loaded[name] if name in loaded else await self._read_stored(name) for name in names]

    async def _read_stored(self, name: ContentHash) -> bytes | SkipReason | None:
        try:
            return await self._catalog.read(name)
        except ContentPurged:
            return None
        except Damaged as error:
            _log.warning("a content cannot be searched: %s", error)
            return SkipReason.UNREADABLE
