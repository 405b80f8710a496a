"""Search: its index, and workers of its own."""

import os
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Final

from contextbase.bootstrap.foundation import Foundation
from contextbase.compute.pool import ComputePool
from contextbase.gate.repository import GateRepository
from contextbase.reads.service import Reads
from contextbase.search.blob_contents import BlobContents
from contextbase.search.indexer import SearchIndexer
from contextbase.search.service import SearchService

__all__ = ["OpenedSearch", "open_search"]

_WORKERS: Final = max(2, os.cpu_count() or 1)
_LONGEST_SECONDS: Final = 20.0  # a job ends by itself after two, unless one line is very long and the pattern nasty


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedSearch:
    service: SearchService
    indexer: SearchIndexer


@asynccontextmanager
async def open_search(foundation: Foundation, reads: Reads, repository: GateRepository) -> AsyncIterator[OpenedSearch]:
    database = foundation.database
    contents = BlobContents(database=database, repository=repository, catalog=foundation.catalog)
    async with AsyncExitStack() as stack:
        # Of its own, so that nobody's search waits for somebody's blame.
        compute = ComputePool(workers=_WORKERS, seconds=_LONGEST_SECONDS)
        stack.push_async_callback(compute.close)
        yield OpenedSearch(
            service=SearchService(database=database, reads=reads, contents=contents, compute=compute),
            indexer=SearchIndexer(
                database=database, contents=contents, compute=foundation.compute, clock=foundation.clock
            ),
        )
