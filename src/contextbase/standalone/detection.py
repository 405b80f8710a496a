"""What a worker did in its sandbox, measured against what it was given."""

from dataclasses import dataclass, field

from contextbase.ids import TreePath
from contextbase.merge import EntryKind
from contextbase.standalone.metadata import Metadata
from contextbase.standalone.model import FileRecord
from contextbase.standalone.tree import Tree
from contextbase.workspaces.ignore_rules import IgnoreTree

__all__ = ["Detected", "WorkerChange", "detect"]


@dataclass(frozen=True, kw_only=True, slots=True)
class WorkerChange:
    path: TreePath
    given: FileRecord | None  # None: it was not there
    now: FileRecord | None  # None: it is deleted


@dataclass(kw_only=True, slots=True)
class Detected:
    deletions: list[WorkerChange] = field(default_factory=list)  # to be made first: a file may become a folder
    writes: list[WorkerChange] = field(default_factory=list)
    failed: dict[str, str] = field(default_factory=dict)  # what cannot be told or synced, and why
    new_folders: list[TreePath] = field(default_factory=list)  # empty ones
    gone_folders: list[TreePath] = field(default_factory=list)  # the deepest first

    def unsafe(self, metadata: Metadata, base: Tree) -> list[str]:
        """What would be lost with the sandbox: all but what is kept beside the base folder's version already."""
        changes = [*self.deletions, *self.writes]
        unkept = (change.path for change in changes if not _is_kept(change, metadata, base))
        return [*self.failed, *unkept, *self.new_folders]


def detect(files: Tree, metadata: Metadata, rules: IgnoreTree) -> Detected:
    """Reads every file. What the sandbox was given is never ignored."""
    detected = Detected()
    given = {*metadata.files, *metadata.folders}
    seen: set[TreePath] = set()
    folders: set[TreePath] = set()

    def ignores(path: str, is_folder: bool) -> bool:
        return path not in given and rules.ignored_by(path, is_folder=is_folder) is not None

    for path, found in files.walk("", left_out=detected.failed, ignores=ignores):
        if found.kind is EntryKind.DIRECTORY:
            folders.add(path)
            continue
        seen.add(path)
        if found.kind is None:
            detected.failed[path] = "It is neither a file, a folder nor a link."
            continue
        try:
            now, _ = files.record(path)
        except OSError as error:
            detected.failed[path] = f"It cannot be read: {error.strerror}."
            continue
        if now != metadata.files.get(path):
            detected.writes.append(WorkerChange(path=path, given=metadata.files.get(path), now=now))
    unreadable = [folder for folder in detected.failed if folder in folders or not folder]
    gone = [path for path in metadata.files if path not in seen]
    for path in sorted(gone, key=lambda path: (-len(path.parts), path)):
        if any(not folder or path.is_below(folder) for folder in unreadable):
            continue  # nobody can tell: the folder is named as failed
        detected.deletions.append(WorkerChange(path=path, given=metadata.files[path], now=None))
    filled = {folder for path in [*seen, *folders] for folder in path.folders}
    detected.new_folders = sorted(folders - filled - metadata.folders)
    missing = [path for path in metadata.folders - folders if not any(path.is_below(folder) for folder in unreadable)]
    detected.gone_folders = sorted(missing, key=lambda path: -len(path.parts))
    return detected


def _is_kept(change: WorkerChange, metadata: Metadata, base: Tree) -> bool:
    kept = metadata.kept.get(change.path)
    if kept is None or kept.content != (change.now.content if change.now else None):
        return False
    return not kept.at or base.find(kept.at) is not None  # somebody may have removed it
