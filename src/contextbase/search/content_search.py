"""Looking into files one batch after the other, until a page is full or the time is over."""

import time
from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import replace
from typing import Final, Protocol

from contextbase.compute.ports import Compute
from contextbase.ids import PrincipalId
from contextbase.search.cursor import SearchCursor
from contextbase.search.model import (
    LARGEST_SEARCHED,
    ContentPage,
    ContentQuery,
    FoundFile,
    SearchedFile,
    SkippedFile,
    SkipReason,
    StopReason,
)
from contextbase.search.scan import FileScan, ScanFile, TextScanLimits, scan_files

__all__ = ["ContentSearch", "FileSource"]

PAGE_SECONDS: Final = 2.0
_LEAST_SECONDS: Final = 0.1
_MOST_BYTES: Final = 64 << 20  # of a page
_FIRST_BATCH_BYTES: Final = 512 << 10
_BATCH_BYTES: Final = 4 << 20
_BATCH_FILES: Final = 100
_LITTLE_BYTES: Final = 32 << 10  # literal text is looked for in as much as this at once, without a worker


class FileSource(Protocol):
    def pages(self, after: str, *, at: str = "") -> AsyncIterator[list[SearchedFile]]:
        """The files to look into, in path order: those after a path, or from the path `at` on."""
        ...

    async def read(self, files: Sequence[SearchedFile]) -> list[bytes | SkipReason | None]:
        """What they hold; None: nothing, any more."""
        ...


class ContentSearch:
    """One page of a search."""

    def __init__(
        self, source: FileSource, query: ContentQuery, start: SearchCursor, *, limit: int, compute: Compute
    ) -> None:
        self._source = source
        self._query = query
        self._start = start
        self._compute = compute
        self._room = limit
        self._until = time.monotonic() + PAGE_SECONDS
        self._bytes_left = _MOST_BYTES
        self._found: list[FoundFile] = []
        self._skipped: list[SkippedFile] = []
        self._at = start
        self._stopped_by: StopReason | None = None

    async def run(self, owner: PrincipalId) -> ContentPage:
        start = self._start
        is_within = start.after_line is not None
        async for page in self._source.pages("" if is_within else start.path, at=start.path if is_within else ""):
            for batch in _batches(page):
                await self._look_into(batch, owner)
                if self._stopped_by is not None:
                    return self._page()
        return self._page()

    async def _look_into(self, batch: Sequence[SearchedFile], owner: PrincipalId) -> None:
        small = [file for file in batch if file.size <= LARGEST_SEARCHED]
        contents = dict(zip(small, await self._source.read(small), strict=True))
        texts = [self._scan_file(file, held) for file, held in contents.items() if isinstance(held, bytes)]
        scans = iter(await self._scanned(texts, owner))
        for file in batch:
            held = contents.get(file, SkipReason.TOO_LARGE)
            scan: FileScan | None = None
            if isinstance(held, SkipReason):
                self._skipped.append(SkippedFile(path=file.path, reason=held))
                self._room -= 1
            elif held is not None:
                scan = next(scans, None)
                if scan is None:
                    self._stopped_by = StopReason.TIME
                    return
                self._take(file, scan)
            self._stop_after(file, scan)
            if self._stopped_by is not None:
                return

    def _scan_file(self, file: SearchedFile, content: bytes) -> ScanFile:
        self._bytes_left -= len(content)
        start = self._start
        if start.after_line is None or file.path != start.path:
            return ScanFile(content=content)
        return ScanFile(
            content=content, after_line=start.after_line, shown_line=start.shown_line, matches_before=start.matches
        )

    async def _scanned(self, texts: list[ScanFile], owner: PrincipalId) -> list[FileScan]:
        pattern = self._query.pattern
        limits = TextScanLimits(
            matches=self._room,
            per_file=self._query.per_file,
            context=self._query.context,
            seconds=max(_LEAST_SECONDS, self._until - time.monotonic()),
        )
        if not pattern.is_expression and sum(len(text.content) for text in texts) <= _LITTLE_BYTES:
            return scan_files(pattern, texts, limits)
        return await self._compute.run(owner, scan_files, pattern, texts, limits)

    def _take(self, file: SearchedFile, scan: FileScan) -> None:
        if scan.lines:
            self._found.append(FoundFile(path=file.path, lines=scan.lines))
        self._room -= scan.matches

    def _stop_after(self, file: SearchedFile, scan: FileScan | None) -> None:
        """Note that all up to here was searched, and whether that is enough."""
        at = self._start
        self._at = SearchCursor(epoch=at.epoch, seq=at.seq, path=file.path)
        if scan is not None and scan.through_line is not None:
            before = at.matches if at.after_line is not None and at.path == file.path else 0
            self._at = replace(
                self._at, after_line=scan.through_line, shown_line=scan.shown_line, matches=before + scan.matches
            )
            self._stopped_by = StopReason.TIME
        elif time.monotonic() >= self._until:
            self._stopped_by = StopReason.TIME
        elif self._bytes_left <= 0:
            self._stopped_by = StopReason.BYTES
        if self._room <= 0:
            self._stopped_by = StopReason.MATCHES

    def _page(self) -> ContentPage:
        return ContentPage(
            epoch=self._start.epoch,
            seq=self._start.seq,
            files=tuple(self._found),
            skipped=tuple(self._skipped),
            cursor=None if self._stopped_by is None else self._at.written(self._query),
            stopped_by=self._stopped_by,
        )


def _batches(files: Sequence[SearchedFile]) -> Iterator[list[SearchedFile]]:
    """Few at first, for who finds enough in them."""
    batch: list[SearchedFile] = []
    size, most = 0, _FIRST_BATCH_BYTES
    for file in files:
        length = file.size if file.size <= LARGEST_SEARCHED else 0
        if batch and (size + length > most or len(batch) == _BATCH_FILES):
            yield batch
            batch, size, most = [], 0, min(2 * most, _BATCH_BYTES)
        batch.append(file)
        size += length
    if batch:
        yield batch
