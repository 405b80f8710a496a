"""The search over a gate of this process, and short ways to use it."""

from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path
from typing import Any, Self

from tests.support.gate_world import GateWorld

from contextbase.compute.ports import Compute
from contextbase.compute.thread import ThreadCompute
from contextbase.db.database import Database
from contextbase.gate.repository import GateRepository
from contextbase.identity.model import Caller
from contextbase.ids import Seq, SystemClock, TreePath
from contextbase.search.blob_contents import BlobContents
from contextbase.search.indexer import SearchIndexer
from contextbase.search.model import ContentPage, ContentQuery, NamePage, NameQuery
from contextbase.search.path_filter import PathFilter
from contextbase.search.pattern import TextPattern
from contextbase.search.service import SearchService

__all__ = ["Found", "SearchWorld", "lines_of"]

Found = tuple[str, int, str]


@dataclass
class SearchWorld:
    gate: GateWorld
    indexer: SearchIndexer
    service: SearchService

    @classmethod
    async def start(
        cls,
        database: Database,
        folder: Path,
        *,
        compute: Compute | None = None,
        patience: float = 0.0,
        limit: int = 262_144,
    ) -> Self:
        return cls.over(
            await GateWorld.start(database, folder, limit=limit),
            compute=compute,
            patience=patience,
        )

    @classmethod
    def over(
        cls,
        world: GateWorld,
        *,
        compute: Compute | None = None,
        patience: float = 0.0,
    ) -> Self:
        contents = BlobContents(database=world.database, repository=GateRepository(), catalog=world.catalog)
        return cls(
            gate=world,
            indexer=SearchIndexer(
                database=world.database,
                contents=contents,
                compute=compute or ThreadCompute(),
                clock=SystemClock(),
                patience=timedelta(seconds=patience),
            ),
            service=SearchService(
                database=world.database,
                reads=world.reads,
                contents=contents,
                compute=compute or ThreadCompute(),
            ),
        )

    async def index_all(self) -> int:
        """How many steps it took."""
        for steps in range(10_000):
            if not await self.indexer.index_some():
                return steps
        raise AssertionError("the index is never done")

    async def pages(
        self,
        text: str,
        *,
        who: Caller | None = None,
        at: int | None = None,
        limit: int = 1000,
        below: str | None = None,
        globs: tuple[str, ...] = (),
        context: int = 0,
        per_file: int | None = None,
        **options: Any,
    ) -> list[ContentPage]:
        """Every page of a search for contents; `options` are the pattern's."""
        folder = None if below is None else TreePath(below)
        query = ContentQuery(
            pattern=TextPattern(text=text, **options),
            files=PathFilter.parse(folder, globs),
            context=context,
            per_file=per_file,
        )
        pages: list[ContentPage] = []
        cursor: str | None = None
        seq = None if at is None else Seq(at)
        for _ in range(10_000):
            page = await self.service.contents(
                who or self.gate.owner, self.gate.project.id, query, seq=seq, cursor=cursor, limit=limit
            )
            pages.append(page)
            cursor, seq = page.cursor, None
            if cursor is None:
                return pages
        raise AssertionError("the pages do not end")

    async def grep(self, text: str, **options: Any) -> list[Found]:
        """The lines that match, of all pages."""
        return [line for page in await self.pages(text, **options) for line in lines_of(page)]

    async def find(
        self,
        words: str = "",
        *,
        who: Caller | None = None,
        at: int | None = None,
        limit: int = 1000,
        below: str | None = None,
        globs: tuple[str, ...] = (),
    ) -> list[str]:
        """The paths of all pages."""
        folder = None if below is None else TreePath(below)
        query = NameQuery(words=words, files=PathFilter.parse(folder, globs))
        found: list[str] = []
        cursor: str | None = None
        seq = None if at is None else Seq(at)
        for _ in range(10_000):
            page: NamePage = await self.service.names(
                who or self.gate.owner, self.gate.project.id, query, seq=seq, cursor=cursor, limit=limit
            )
            found += page.paths
            cursor, seq = page.cursor, None
            if cursor is None:
                return found
        raise AssertionError("the pages do not end")


def lines_of(page: ContentPage) -> list[Found]:
    """The lines that match, without those around them."""
    return [
        (str(file.path), line.number, line.text)
        for file in page.files
        for line in file.lines
        if line.ranges is not None
    ]
