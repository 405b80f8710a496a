"""The files of a snapshot that a search looks into: those that may match, and that the caller may see."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Final

import asyncpg

from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.ids import ContentHash, TreePath
from contextbase.reads.snapshot_view import VisibleSnapshot
from contextbase.search.blob_contents import BlobContents
from contextbase.search.index import BlobCandidates
from contextbase.search.model import SearchedFile, SkipReason
from contextbase.search.path_filter import PathFilter

__all__ = ["SnapshotFiles", "visible_paths"]

_SQL: Final = load_queries("contextbase.search")
_FEW: Final = 1000  # blobs, for which the files are looked up; for more, all files are gone through instead
_PAGE: Final = 500
_PATHS_PAGE: Final = 5000


@dataclass(frozen=True, kw_only=True, slots=True)
class SnapshotFiles:
    database: Database
    contents: BlobContents
    view: VisibleSnapshot
    candidates: BlobCandidates
    files: PathFilter

    async def pages(self, after: str, *, at: str = "") -> AsyncIterator[list[SearchedFile]]:
        """In path order: those after a path, or from the path `at` on. Holds no connection between two pages."""
        bounds = _bounds(self.view, self.files)
        if bounds is None:
            return
        first, end = max(bounds[0], at), bounds[1]
        while True:
            async with self.database.connection() as connection:
                rows = await self._rows(connection, first, end, after)
                likely = [row for row in rows if self._may_match(row)]
                shown = likely if self.view.authority.sees_everything else await self.view.shown(connection, likely)
            yield [_file(row) for row in shown]
            if len(rows) < _PAGE:
                return
            after = rows[-1]["path"]
            first = max(first, self.view.behind(TreePath.stored(after)))

    async def read(self, files: Sequence[SearchedFile]) -> list[bytes | SkipReason | None]:
        return await self.contents.read([file.content_hash for file in files if file.content_hash is not None])

    async def _rows(self, connection: Connection, first: str, end: str, after: str) -> list[asyncpg.Record]:
        candidates, view = self.candidates, self.view
        numbers = candidates.numbers
        if numbers is None or len(numbers) > _FEW:
            return await connection.fetch(_SQL.files_page, view.project_id, view.seq, first, end, after, _PAGE)
        return await connection.fetch(
            _SQL.files_of_blobs,
            *(view.project_id, view.seq, first, end, after),
            *(numbers, candidates.indexed_through, candidates.last_blob, _PAGE),
        )

    def _may_match(self, row: asyncpg.Record) -> bool:
        if row["left_out"] == "binary" or not self.files.passes(TreePath.stored(row["path"])):
            return False
        return row["left_out"] is not None or self.candidates.has(row["blob"])  # the former is named as not searched


async def visible_paths(database: Database, view: VisibleSnapshot) -> AsyncIterator[list[TreePath]]:
    """The paths of all files and links that the caller may see, in order. Holds no connection between two pages."""
    bounds = view.range_below(None)
    if bounds is None:
        return
    (first, end), after = bounds, ""
    while True:
        async with database.connection() as connection:
            rows = await connection.fetch(_SQL.paths_page, view.project_id, view.seq, first, end, after, _PATHS_PAGE)
            shown = rows if view.authority.sees_everything else await view.shown(connection, rows)
        yield [TreePath.stored(row["path"]) for row in shown]
        if len(rows) < _PATHS_PAGE:
            return
        after = rows[-1]["path"]
        first = max(first, view.behind(TreePath.stored(after)))


def _bounds(view: VisibleSnapshot, files: PathFilter) -> tuple[str, str] | None:
    """The range of paths to look in; None: there is nothing to look for."""
    bounds = view.range_below(files.below)
    if bounds is None or files.below is None or bounds[0] != f"{files.below}/":
        return bounds
    return files.below, bounds[1]  # it may be a file, too


def _file(row: asyncpg.Record) -> SearchedFile:
    return SearchedFile(
        path=TreePath.stored(row["path"]), size=row["size"], content_hash=ContentHash(row["content_hash"])
    )
