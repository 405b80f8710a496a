"""The mirrors of this machine, one for each project and epoch."""

from pathlib import Path
from uuid import UUID

from contextbase.ids import ProjectId
from contextbase.workspaces.mirror import Mirror
from contextbase.workspaces.model import Owner, SnapshotKey
from contextbase.workspaces.ports import SnapshotSource

__all__ = ["Mirrors"]


class Mirrors:
    def __init__(self, folder: Path, source: SnapshotSource, *, owner: Owner) -> None:
        self.owner = owner
        self._folder = folder
        self._source = source
        self._open: dict[tuple[ProjectId, UUID], Mirror] = {}

    def of(self, snapshot: SnapshotKey) -> Mirror:
        key = (snapshot.project_id, snapshot.epoch)
        if key not in self._open:
            folder = self._folder / str(snapshot.project_id) / str(snapshot.epoch)
            self._open[key] = Mirror(folder, self._source, owner=self.owner)
        return self._open[key]
