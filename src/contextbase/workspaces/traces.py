"""Where the files of a workspace come from, as far as its kind of folder tells."""

import os
from dataclasses import dataclass
from typing import Protocol

from contextbase.ids import TreePath
from contextbase.workspaces.layer_view import ViewEntry

__all__ = ["FolderTrace", "FolderTraces", "Traces"]


@dataclass(frozen=True, kw_only=True, slots=True)
class FolderTrace:
    was: str | None  # which folder of the view it is, wherever it stands now; None: a new one
    shows: bool = False  # whether what the view has in that folder shows through


class FolderTraces(Protocol):
    """What a kind of workspace knows about where its folders come from: as much as its names need."""

    def trace_of(self, folder: int, path: str, above: str | None) -> FolderTrace:
        """Of an open folder. `above` is which folder of the view the one above it is."""
        ...

    def is_whiteout(self, status: os.stat_result) -> bool: ...


class Traces(FolderTraces, Protocol):
    """What a kind of workspace knows about where its files come from."""

    def is_untouched(self, path: str, status: os.stat_result) -> bool:
        """Whether the file is surely as it was given, so that it need not be read."""
        ...

    def origin_of(self, descriptor: int) -> bytes | None:
        """What file of the view this one was, before it was changed or renamed."""
        ...

    def origin_of_link(self, folder: int, name: str) -> bytes | None:
        """As `origin_of`, of a symlink in an open folder."""
        ...

    def identity_in_view(self, path: TreePath, entry: ViewEntry) -> bytes | None:
        """What `origin_of` says about a file that was this one."""
        ...
