"""Which files of an app's session are stored, and where. Pure.

/workspace/** is, with .agent_data; .codex, .claude and .opencode at its root are not: programs write there by mistake.
What a mount point shows is stored where it came from, or, if it is read-only, nowhere.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from contextbase.catalog.manifest import inside
from contextbase.ids import TreePath
from contextbase.wire.manifest import MountName, RuntimeManifest

__all__ = ["STRAY_FOLDERS", "SyncFilter", "SyncPlace"]

STRAY_FOLDERS: Final = (".claude", ".codex", ".opencode")


class SyncPlace(StrEnum):
    SESSION = "session"  # below the session's own prefix
    STATE = "state"  # with the agent program's own data
    USER_FILES = "user_files"
    NOWHERE = "nowhere"


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncFilter:
    mounts: tuple[tuple[TreePath, SyncPlace], ...]

    @classmethod
    def of_manifest(cls, manifest: RuntimeManifest) -> "SyncFilter":
        mounts = []
        for point in manifest.mount_points:
            target = inside(point.target_path)
            if target is not None:
                mounts.append((target, _place(point.name, read_only=point.read_only)))
        return cls(mounts=tuple(mounts))

    def place_of(self, path: TreePath) -> SyncPlace:
        """Where a file of the workspace is stored, by its path below it."""
        if path.split("/", 1)[0] in STRAY_FOLDERS:
            return SyncPlace.NOWHERE
        for target, place in self.mounts:
            if path == target or path.is_below(target):
                return place
        return SyncPlace.STATE if path.split("/", 1)[0] == ".agent_data" else SyncPlace.SESSION

    @property
    def left_out(self) -> tuple[str, ...]:
        """Paths that stay out of the session's own files, relative to the workspace."""
        own = (SyncPlace.SESSION, SyncPlace.STATE)
        return (*STRAY_FOLDERS, *(str(target) for target, place in self.mounts if place not in own))


def _place(name: MountName, *, read_only: bool) -> SyncPlace:
    if name is MountName.AGENT_DATA:
        return SyncPlace.STATE
    return SyncPlace.USER_FILES if name is MountName.USER_FILES and not read_only else SyncPlace.NOWHERE
