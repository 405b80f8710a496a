"""Paths in a workspace's folder and in its project: the same, unless the workspace is of a folder of the project."""

from dataclasses import dataclass

from contextbase.ids import TreePath

__all__ = ["WHOLE_PROJECT", "PlacePaths"]


@dataclass(frozen=True, slots=True)
class PlacePaths:
    folder: TreePath | None  # what the workspace has as its top; None: the project's own top

    def in_project(self, path: TreePath) -> TreePath:
        return path if self.folder is None else TreePath.stored(f"{self.folder}/{path}")

    def in_folder(self, path: TreePath) -> TreePath | None:
        """None: it lies outside, or is the folder itself."""
        if self.folder is None:
            return path
        return TreePath.stored(path[len(self.folder) + 1 :]) if path.is_below(self.folder) else None

    def named(self, path: str) -> str:
        """As the workspace names it, if it lies inside."""
        return self.in_folder(TreePath.stored(path)) or path


WHOLE_PROJECT = PlacePaths(None)
