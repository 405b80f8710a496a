"""Contents by name, many at a time."""

from collections.abc import Iterable

from contextbase.db.database import Connection
from contextbase.errors import ContentPurged
from contextbase.gate.content_cache import ContentCache
from contextbase.gate.repository import GateRepository
from contextbase.ids import ContentHash
from contextbase.storage.blobs.catalog import BlobCatalog

__all__ = ["ContentLoader"]


class ContentLoader:
    """Reads all that is asked for at once, but for the large ones. The caller bounds how much that is."""

    def __init__(self, *, repository: GateRepository, catalog: BlobCatalog, cache: ContentCache) -> None:
        self._repository = repository
        self._catalog = catalog
        self._cache = cache

    async def load(self, connection: Connection, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        """All of these; raises `ContentPurged`."""
        wanted = set(names)
        loaded = await self._at_hand(connection, wanted)
        for name in wanted - loaded.keys():
            loaded[name] = await self._read(name)
        return loaded

    async def load_kept(self, connection: Connection, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        """Those of these that were not purged."""
        wanted = set(names)
        loaded = await self._at_hand(connection, wanted)
        for name in wanted - loaded.keys():
            try:
                loaded[name] = await self._read(name)
            except ContentPurged:
                continue
        return loaded

    async def _at_hand(self, connection: Connection, names: set[ContentHash]) -> dict[ContentHash, bytes]:
        loaded = self._cache.find(names)
        stored = await self._repository.inline_contents(connection, [name for name in names if name not in loaded])
        for name, content in stored.items():
            self._cache.keep(name, content)
        return loaded | stored

    async def _read(self, name: ContentHash) -> bytes:
        content = await self._catalog.read(name)
        self._cache.keep(name, content)
        return content
