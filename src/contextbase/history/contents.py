"""Contents by name, many at a time."""

from collections.abc import Iterable

from contextbase.db.database import Connection
from contextbase.gate.cache import ContentCache
from contextbase.gate.repository import GateRepository
from contextbase.ids import ContentHash
from contextbase.storage.blobs.catalog import BlobCatalog

__all__ = ["ContentLoader"]


class ContentLoader:
    def __init__(self, *, repository: GateRepository, catalog: BlobCatalog, cache: ContentCache) -> None:
        self._repository = repository
        self._catalog = catalog
        self._cache = cache

    async def load(self, connection: Connection, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        """All of these, in one reading but for the large ones. The caller bounds how much that is."""
        wanted = set(names)
        loaded = self._cache.find(wanted)
        loaded |= await self._repository.inline_contents(connection, [name for name in wanted if name not in loaded])
        for name in wanted - loaded.keys():
            loaded[name] = await self._catalog.read(name)
        return loaded
