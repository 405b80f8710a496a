"""What a project has at a workspace's paths, as the workspace names them."""

from collections.abc import Collection, Iterable, Mapping
from typing import TypeVar

from contextbase.db.database import Connection
from contextbase.ids import NodeId, ProjectId, Seq, TreePath
from contextbase.workspaces.model import FolderContent
from contextbase.workspaces.place_paths import PlacePaths
from contextbase.workspaces.repository import WorkspaceRecord, WorkspaceRepository

__all__ = ["PlaceReads"]

_T = TypeVar("_T")
Difference = tuple[TreePath, FolderContent | None, FolderContent | None]


class PlaceReads:
    """See `WorkspaceRepository`, whose methods these are; what lies outside of the workspace's folder is left out."""

    def __init__(self, registry: WorkspaceRepository, record: WorkspaceRecord) -> None:
        self._registry = registry
        self._project_id: ProjectId = record.project_id
        self._paths: PlacePaths = record.paths

    async def differences(self, connection: Connection, older: Seq, newer: Seq) -> list[Difference]:
        found = await self._registry.differences(connection, self._project_id, older, newer)
        return [(path, then, now) for place, then, now in found if (path := self._paths.in_folder(place)) is not None]

    async def nodes_at(
        self, connection: Connection, seq: Seq, paths: Iterable[TreePath]
    ) -> dict[TreePath, FolderContent]:
        asked = list(map(self._paths.in_project, paths))
        return self._inside(await self._registry.nodes_at(connection, self._project_id, seq, asked))

    async def nodes_at_each(
        self, connection: Connection, asked: Mapping[TreePath, Seq]
    ) -> dict[TreePath, tuple[NodeId, FolderContent]]:
        places = {self._paths.in_project(path): seq for path, seq in asked.items()}
        return self._inside(await self._registry.nodes_at_each(connection, self._project_id, places))

    async def nodes_within(
        self, connection: Connection, seq: Seq, paths: Collection[TreePath]
    ) -> dict[TreePath, FolderContent]:
        places = list(map(self._paths.in_project, paths))
        return self._inside(await self._registry.nodes_within(connection, self._project_id, seq, places))

    def _inside(self, found: Mapping[TreePath, _T]) -> dict[TreePath, _T]:
        return {path: one for place, one in found.items() if (path := self._paths.in_folder(place)) is not None}
