"""The base folder as the merge engine sees it, at one look."""

import os
from collections.abc import Iterator
from typing import Final

from contextbase.ids import ContentHash, TreePath
from contextbase.merge import EntryKind, TooLargeToMerge, TreeEntry
from contextbase.standalone.contents import ContentFolder
from contextbase.standalone.model import FileRecord
from contextbase.standalone.tree import FoundEntry, Tree

__all__ = ["BaseHead", "Moved"]

_LARGEST_MERGE: Final = 64 << 20


class Moved(Exception):
    """The base folder's version is no longer the one that was looked at."""


class BaseHead:
    """For one path: what was found there is remembered, and `check` says whether it still holds."""

    def __init__(self, base: Tree, contents: ContentFolder, path: TreePath) -> None:
        self._base = base
        self._contents = contents
        self._path = path
        self.found = base.find(path)
        self.record: FileRecord | None = None  # of a file or link
        if self.found is not None and self.found.kind is not EntryKind.DIRECTORY:
            self.record, self.found = base.record(path)

    def entry(self, path: TreePath) -> TreeEntry | None:
        if path == self._path and self.record is not None:
            return TreeEntry(kind=self.record.kind, content=self.record.content)
        found = self.found if path == self._path else self._base.find(path)
        if found is None:
            return None
        return TreeEntry(kind=found.kind or EntryKind.FILE)  # above it: a folder, or something in a folder's place

    def below(self, folder: TreePath) -> Iterator[TreePath]:
        found = self._base.find(folder)
        if found is not None and found.kind is EntryKind.DIRECTORY:
            yield from (path for path, _ in self._base.walk(folder, left_out={}))

    def renamed_to(self, path: TreePath) -> None:
        """A plain folder does not know."""

    def rank(self, path: TreePath) -> int:  # noqa: ARG002 - nobody has one here
        return 0

    def read(self, content: ContentHash) -> bytes:
        """Of the base folder's version, or of one of the sandbox's."""
        if self.record is None or content != self.record.content:
            if self._contents.size(content) > _LARGEST_MERGE:
                raise TooLargeToMerge
            return self._contents.read(content)
        with os.fdopen(self._base.open_file(self._path), "rb") as file:
            if os.fstat(file.fileno()).st_size > _LARGEST_MERGE:
                raise TooLargeToMerge
            return file.read()  # should it be another version by now, `check` will say so

    def check(self) -> None:
        """Raises `Moved`."""
        if _stamp(self._base.find(self._path)) != _stamp(self.found):
            raise Moved


def _stamp(found: FoundEntry | None) -> tuple[int, ...] | None:
    if found is None:
        return None
    return found.stamp if found.kind is not EntryKind.DIRECTORY else ()  # a folder's time says nothing of itself
