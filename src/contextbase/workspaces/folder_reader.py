"""A workspace as a search sees it: the snapshot it shows, and what its folder has in the place of some of it."""

import os
from collections.abc import Sequence
from pathlib import Path
from uuid import UUID

from contextbase.ids import Seq, TreePath
from contextbase.search.model import LARGEST_SEARCHED
from contextbase.search.ports import ChangedFile
from contextbase.storage.model import Kind
from contextbase.threads import in_thread
from contextbase.workspaces.folder import Folder
from contextbase.workspaces.model import DetectedChange, FolderChangeKind, WorkspaceChanges

__all__ = ["WorkspaceFolderReader"]


class WorkspaceFolderReader:
    """See `FolderReader`. What is ignored, or cannot be committed as it is, is not part of it."""

    def __init__(self, found: WorkspaceChanges, work: Path) -> None:
        self._view = found.view
        self._work = work
        # What differs in nothing but its mode is as it was.
        changes = [change for change in found.changes if change.kind is not FolderChangeKind.MODE]
        self._replaced = {change.path for change in changes}
        self._replaced |= {change.renamed_from for change in changes if change.renamed_from is not None}
        self._replaced |= {TreePath.stored(os.fsdecode(reported.name)) for reported in found.reported}
        self._files = {change.path: change for change in changes if _is(change, Kind.FILE)}
        self._links = tuple(change.path for change in changes if _is(change, Kind.SYMLINK))

    @property
    def epoch(self) -> UUID:
        return self._view.snapshot.epoch

    @property
    def seq(self) -> Seq:
        return self._view.snapshot.seq

    @property
    def changed(self) -> Sequence[ChangedFile]:
        changes = sorted(self._files.items())
        return [ChangedFile(path=path, size=change.content.size if change.content else 0) for path, change in changes]

    @property
    def links(self) -> Sequence[TreePath]:
        return self._links

    @property
    def folder(self) -> TreePath | None:
        return self._view.folder

    def shown_at(self, path: TreePath) -> TreePath | None:
        place = self._view.paths.in_folder(path)
        return None if place is None or place in self._replaced or self._view.hides(place) else place

    async def read(self, paths: Sequence[TreePath]) -> list[bytes | None]:
        return await in_thread(self._read_all, paths) if paths else []

    def _read_all(self, paths: Sequence[TreePath]) -> list[bytes | None]:
        with Folder(self._work) as folder:
            return [self._read(self._files[path], folder) for path in paths]

    def _read(self, change: DetectedChange, folder: Folder) -> bytes | None:
        try:
            if change.layer_file is None:
                return folder.read(change.path, most=LARGEST_SEARCHED)
            with Path(change.layer_file).open("rb") as file:  # it came with a folder that was renamed
                return file.read(LARGEST_SEARCHED)
        except OSError:
            return None


def _is(change: DetectedChange, kind: Kind) -> bool:
    return change.content is not None and change.content.kind is kind
