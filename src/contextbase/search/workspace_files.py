"""The files of a workspace that a search looks into: of its snapshot those that may match, of its folder all others."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from heapq import merge
from typing import Final

from contextbase.search.model import SearchedFile, SkipReason
from contextbase.search.path_filter import PathFilter
from contextbase.search.ports import FolderReader
from contextbase.search.snapshot_files import SnapshotFiles

__all__ = ["SearchedWorkspace"]

_PAGE: Final = 500


class SearchedWorkspace:
    def __init__(self, *, snapshot: SnapshotFiles, folder: FolderReader, files: PathFilter) -> None:
        self._snapshot = snapshot
        self._folder = folder
        self._files = files

    async def pages(self, after: str, *, at: str = "") -> AsyncIterator[list[SearchedFile]]:
        changed = [
            SearchedFile(path=file.path, size=file.size, content_hash=None)
            for file in self._folder.changed
            if self._files.passes(file.path) and (file.path >= at if at else file.path > after)
        ]
        above = "" if self._folder.folder is None else f"{self._folder.folder}/"
        async for page in self._snapshot.pages(above + after, at=at and above + at):
            if not page:
                continue
            last = page[-1].path.removeprefix(above)
            unchanged = [
                replace(file, path=path) for file in page if (path := self._folder.shown_at(file.path)) is not None
            ]
            come = [file for file in changed if file.path <= last]
            changed = changed[len(come) :]
            yield list(merge(unchanged, come, key=lambda file: file.path))
        for start in range(0, len(changed), _PAGE):
            yield changed[start : start + _PAGE]

    async def read(self, files: Sequence[SearchedFile]) -> list[bytes | SkipReason | None]:
        """What a file of the folder holds by now, however it got there."""
        stored = [file for file in files if file.content_hash is not None]
        held = dict(zip(stored, await self._snapshot.read(stored), strict=True))
        own = [file for file in files if file.content_hash is None]
        held |= zip(own, await self._folder.read([file.path for file in own]), strict=True)
        return [held[file] for file in files]
