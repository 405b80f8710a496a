"""What the file service needs of a place, and of the content of a file in it."""

from collections.abc import AsyncGenerator, AsyncIterable, Hashable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

from contextbase.files.file_tree import FolderNode
from contextbase.files.model import (
    FileDetails,
    HistoryPage,
    OperationContext,
    OperationResult,
    PlaceSyncResult,
    PlaceUsage,
)
from contextbase.history.archive_writers import ArchiveFormat
from contextbase.ids import TreePath

__all__ = ["FileContent", "OpenedFile", "Place"]


class FileContent(Protocol):
    """The bytes of one file, to be read at any offset and in any order."""

    @property
    def size(self) -> int: ...

    @property
    def identity(self) -> Hashable | None:
        """Equal only for equal bytes; None: it may change before anybody could tell."""
        ...

    @property
    def descriptor(self) -> int | None:
        """Of an open file that has just these bytes; None: they are in no file of their own."""
        ...

    def stream(self, start: int, end: int) -> AsyncGenerator[bytes, None]:
        """The bytes from `start` up to (not including) `end`, in pieces of at most 1 MiB. A reader that may stop early
        closes it. A file that got shorter meanwhile ends early."""
        ...


@dataclass(frozen=True, kw_only=True, slots=True)
class OpenedFile:
    details: FileDetails
    content: FileContent


class Place(Protocol):
    """A project, at its head or in a snapshot, or an open workspace: as one caller may see and change it.

    One contract suite (tests/contracts/test_places.py) runs over both. Every method raises `NotFound` for what is not
    there or not to be seen, and `Forbidden` for what the caller may not do. Those that change something also raise
    `PreconditionFailed` where `context.expects` is not met, and nothing was changed then. What is not refused is
    durable when the method returns, and in the place's history.
    """

    @property
    def reference(self) -> str:
        """How a file in it is referred to, before its path: `workspace`, or `project`."""
        ...

    async def tree(self) -> FolderNode:
        """Everything in it, by the basic tier."""
        ...

    async def folder(self, path: TreePath | None) -> FolderNode:
        """The entries of one folder (None: the top). What is in its folders need not be told."""
        ...

    async def mimes(self, folder: TreePath | None, names: list[str]) -> dict[str, str]:
        """The types of these files of a folder, from their names and contents."""
        ...

    async def details(self, path: TreePath) -> FileDetails: ...

    def opened(self, path: TreePath) -> AbstractAsyncContextManager[OpenedFile]:
        """A file or link (its content is its target) that can be read until the block ends; `InvalidInput` for a
        folder."""
        ...

    def archive(self, path: TreePath | None, form: ArchiveFormat) -> AbstractAsyncContextManager[AsyncGenerator[bytes]]:
        """A folder (None: the top) with all in it, or a file, made while it is read."""
        ...

    async def write(
        self, path: TreePath, content: AsyncIterable[bytes], context: OperationContext, *, mime: str = ""
    ) -> OperationResult:
        """Make a file, or replace what it holds."""
        ...

    async def add(
        self, folder: TreePath | None, name: str, content: AsyncIterable[bytes], context: OperationContext
    ) -> OperationResult:
        """Make a file in a folder under the first of its names that is free; nothing is ever replaced."""
        ...

    async def delete(self, path: TreePath, context: OperationContext, *, recursive: bool = False) -> OperationResult:
        """Remove a file or an empty folder, or (`recursive`) a folder with all in it; `Conflict` for a folder that is
        not empty otherwise."""
        ...

    async def rename(self, path: TreePath, target: TreePath, context: OperationContext) -> OperationResult:
        """Move a file, or a folder with all in it; `Conflict` if something stands at the target."""
        ...

    async def make_folder(self, path: TreePath, context: OperationContext) -> OperationResult:
        """With those it lies in; unchanged if it is there; `Conflict` if something else is."""
        ...

    async def history(self, path: TreePath | None, *, before: str | None, limit: int) -> HistoryPage:
        """What was done in the place, or (`path`) to one file across its renames, the newest first."""
        ...

    async def sync(self, context: OperationContext) -> PlaceSyncResult:
        """Register what programs changed behind our back since the last time."""
        ...

    async def last_sync(self) -> datetime | None: ...

    async def usage(self) -> PlaceUsage: ...
