"""Filling the index: in the background, a step at a time, so that no commit waits for it.

A step that is cut off has done nothing. What is not in the index yet is found all the same, by looking into it.
"""

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

import asyncpg

from contextbase.compute.ports import Compute
from contextbase.db.database import Connection, Database
from contextbase.db.queries import load_queries
from contextbase.ids import Clock, ContentHash, ProjectId, Seq
from contextbase.search.blob_contents import BlobContents
from contextbase.search.model import LARGEST_SEARCHED
from contextbase.search.segments import Segment, merge_wanted, room_in_window, segment_rows, without

__all__ = ["SearchIndexer"]

_log = logging.getLogger(__name__)
_SQL: Final = load_queries("contextbase.search")

_MOST_BLOBS: Final = 1000  # of a step
_MOST_BYTES: Final = 4 << 20
_ENOUGH_BLOBS: Final = 200  # to make a step before they have waited for long
_MOST_PROJECTS: Final = 16
_MOST_GONE: Final = 1000
_PAGE: Final = 1000
_PIECE_BYTES: Final = 256 << 10
_GRAMS_AT_ONCE: Final = 1 << 18
_ALL_GRAMS: Final = 1 << 24
_OWNER: Final = "search index"


@dataclass(frozen=True, kw_only=True, slots=True)
class _Step:
    project_id: ProjectId
    names: tuple[ContentHash, ...]  # of contents to be read
    too_large: tuple[ContentHash, ...]  # of others
    through: Seq  # with these, all contents up to this commit have a number
    segment: int
    first: int  # number for a blob


@dataclass(frozen=True, kw_only=True, slots=True)
class SearchIndexer:
    database: Database
    contents: BlobContents
    compute: Compute
    clock: Clock
    patience: timedelta = timedelta(seconds=30)

    async def index_some(self) -> bool:
        """One step of bounded size; whether there was anything to do. Any number of servers may call it: of two that
        take the same step, one has done nothing."""
        return await self._add_some() or await self._merge_some() or await self._forget_some()

    async def index_all(self) -> None:
        """Until nothing is left to do. After a step it rests as long as the step took, so that it has at most half of
        one processor."""
        while True:
            began = time.monotonic()
            if not await self.index_some():
                return
            await asyncio.sleep(time.monotonic() - began)

    async def forget_gone(self) -> None:
        """Take the numbers of all contents that are gone, such as purged ones, out of the index now."""
        while await self._forget_some():
            pass

    async def _add_some(self) -> bool:
        step = await self._next_step()
        if step is None:
            return False
        contents = await self.contents.read(step.names)
        texts = [content if isinstance(content, bytes) else b"" for content in contents]
        rows = await self.compute.run(_OWNER, segment_rows, step.segment, step.first, texts)
        left_out = [
            "unreadable" if not isinstance(content, bytes) else None if is_text else "binary"
            for content, is_text in zip(contents, rows.is_text, strict=True)
        ]
        left_out += ["too_large"] * len(step.too_large)
        try:
            async with self.database.transaction() as connection:
                await connection.execute(_SQL.lock_index)
                if left_out:
                    numbers = range(step.first, step.first + len(left_out))
                    await connection.execute(_SQL.insert_segment, step.segment, numbers[0], numbers[-1])
                    await connection.execute(_SQL.insert_blobs, numbers, step.names + step.too_large, left_out)
                    await connection.copy_to_table("search_postings", source=_pieces(rows.postings), format="binary")
                await connection.execute(_SQL.advance, step.project_id, step.through)
        except (asyncpg.UniqueViolationError, asyncpg.ExclusionViolationError, asyncpg.ForeignKeyViolationError):
            _log.info("a step of the search index is made again: another server took it, or a content is gone")
        return True

    async def _next_step(self) -> _Step | None:
        async with self.database.connection() as connection:
            for row in await connection.fetch(_SQL.projects_behind, _MOST_PROJECTS):
                waiting = await connection.fetch(
                    _SQL.blobs_to_index, row["id"], row["seq"], row["head"], _MOST_BLOBS + 1
                )
                has_waited = self.clock.now() - row["waiting_since"] >= self.patience
                if not waiting or len(waiting) >= _ENOUGH_BLOBS or has_waited:
                    return await self._step(connection, ProjectId(row["id"]), waiting, Seq(row["head"]))
        return None

    async def _step(
        self, connection: Connection, project_id: ProjectId, waiting: Sequence[asyncpg.Record], head: Seq
    ) -> _Step:
        start = await connection.fetchrow(_SQL.next_segment)
        assert start is not None, "the query always gives a row"  # noqa: S101 - for the type checker
        most = min(_MOST_BLOBS, room_in_window(start["first"]))
        names: list[ContentHash] = []
        too_large: list[ContentHash] = []
        size, through = 0, head
        for row in waiting:
            is_small = row["size"] <= LARGEST_SEARCHED
            is_full = len(names) + len(too_large) == most or (names and is_small and size + row["size"] > _MOST_BYTES)
            if is_full:
                through = Seq(row["seq"] - 1)
                break
            size += row["size"] if is_small else 0
            (names if is_small else too_large).append(ContentHash(row["content_hash"]))
        return _Step(
            project_id=project_id,
            names=tuple(names),
            too_large=tuple(too_large),
            through=through,
            segment=start["number"],
            first=start["first"],
        )

    async def _merge_some(self) -> bool:
        async with self.database.transaction() as connection:
            await connection.execute(_SQL.lock_index)
            segments = [_segment(row) for row in await connection.fetch(_SQL.segments)]
            merged = merge_wanted(segments)
            if not merged:
                return False
            number = await connection.fetchval(_SQL.next_segment)
            numbers = [segment.number for segment in merged]
            for gram in range(0, _ALL_GRAMS, _GRAMS_AT_ONCE):
                await connection.execute(_SQL.merge_postings, number, numbers, gram, gram + _GRAMS_AT_ONCE)
            for old in numbers:
                await connection.execute(_SQL.delete_segment, old)
            await connection.execute(_SQL.insert_segment, number, merged[0].first, merged[-1].last)
        return True

    async def _forget_some(self) -> bool:
        async with self.database.transaction() as connection:
            await connection.execute(_SQL.lock_index)
            rows = await connection.fetch(_SQL.gone_blobs, _MOST_GONE)
            if not rows:
                return False
            segment = _segment(rows[0])
            gone = {row["id"] for row in rows if row["number"] == segment.number}
            await self._take_out(connection, segment, gone)
            await connection.execute(_SQL.delete_blobs, list(gone))
        return True

    async def _take_out(self, connection: Connection, segment: Segment, gone: set[int]) -> None:
        last = -1
        while rows := await connection.fetch(_SQL.posting_page, segment.number, last, _PAGE):
            last = rows[-1]["gram"]
            lists = {row["gram"]: ids for row in rows if (ids := without(row["ids"], gone)) is not None}
            empty = [gram for gram, ids in lists.items() if not ids]
            await connection.execute(_SQL.replace_postings, segment.number, list(lists), list(lists.values()))
            await connection.execute(_SQL.delete_postings, segment.number, empty)


def _segment(row: asyncpg.Record) -> Segment:
    return Segment(number=row["number"], first=row["first"], last=row["last"])


async def _pieces(data: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(data), _PIECE_BYTES):
        yield data[start : start + _PIECE_BYTES]
