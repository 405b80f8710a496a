"""What a search needs of those above it."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol
from uuid import UUID

from contextbase.ids import Seq, TreePath

__all__ = ["ChangedFile", "FolderReader"]


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangedFile:
    path: TreePath
    size: int


class FolderReader(Protocol):
    """A workspace as it is now: a snapshot, and what its folder has in the place of some of it."""

    @property
    def epoch(self) -> UUID: ...

    @property
    def seq(self) -> Seq: ...

    @property
    def changed(self) -> Sequence[ChangedFile]:
        """New files, and others that are not as in the snapshot; in path order. Links are not among them."""
        ...

    @property
    def links(self) -> Sequence[TreePath]:
        """New and changed links, in path order."""
        ...

    @property
    def folder(self) -> TreePath | None:
        """What of the snapshot it has as its top; None: all of it. Its paths are those in there."""
        ...

    def shown_at(self, path: TreePath) -> TreePath | None:
        """Where what the snapshot has at a path of the project is in the folder, unchanged; None: nowhere."""
        ...

    async def read(self, paths: Sequence[TreePath]) -> list[bytes | None]:
        """What the files hold; None for one that is gone since, or is no plain file any more."""
        ...
