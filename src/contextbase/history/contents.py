"""The contents that comparisons and blames need, many at a time."""

from collections.abc import Iterable
from typing import Final

from contextbase.db.database import Connection
from contextbase.db.queries import load_queries
from contextbase.gate.cache import ContentCache
from contextbase.ids import ContentHash
from contextbase.storage.blobs.catalog import BlobCatalog

__all__ = ["Contents"]

_SQL: Final = load_queries("contextbase.history")


class Contents:
    def __init__(self, *, catalog: BlobCatalog, cache: ContentCache) -> None:
        self._catalog = catalog
        self._cache = cache

    async def load(self, connection: Connection, names: Iterable[ContentHash]) -> dict[ContentHash, bytes]:
        """Those of these contents that are still there: a purged one is not."""
        wanted = set(names)
        loaded = self._cache.find(wanted)
        missing = [name for name in wanted if name not in loaded]
        rows = await connection.fetch(_SQL.stored_contents, missing) if missing else []
        for row in rows:
            name = ContentHash(row["hash"])
            if row["purged"]:
                continue
            content = row["content"]
            loaded[name] = await self._catalog.read(name) if content is None else content
            self._cache.keep(name, loaded[name])
        return loaded
