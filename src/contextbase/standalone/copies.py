"""Files of the base folder into a sandbox: all of those asked for, or none."""

import contextlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from contextbase.durable import explained
from contextbase.errors import Conflict, InvalidInput, NotFound
from contextbase.identity.levels import check_pattern
from contextbase.ids import TreePath
from contextbase.leases import overlap
from contextbase.merge import EntryKind
from contextbase.standalone.contents import ContentFolder
from contextbase.standalone.metadata import Metadata
from contextbase.standalone.model import CopyResult, FileRecord
from contextbase.standalone.tree import FoundEntry, Tree, parent_of
from contextbase.workspaces.ignore_rules import IgnoreTree
from contextbase.workspaces.syscalls import sync_filesystem

__all__ = ["Copying", "forget_unfinished"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Copying:
    base: Tree
    files: Tree
    contents: ContentFolder
    metadata: Metadata
    sandbox: Path
    rules: IgnoreTree

    def run(self, wanted: Sequence[str]) -> CopyResult:
        left_out: dict[str, str] = {}
        chosen: dict[TreePath, FoundEntry] = {}
        for name in wanted:
            chosen |= self._chosen(name, left_out)
        for path in chosen:
            self._check_free(path, chosen[path])
        things = {path: found for path, found in chosen.items() if found.kind is not EntryKind.DIRECTORY}
        folders = {path for path in chosen if path not in things} | {up for path in chosen for up in path.folders}
        self.metadata.copying = list(things)
        self.metadata.write(self.sandbox)
        try:
            with explained(self.sandbox):
                for folder in sorted(folders):
                    self.files.make_folder(folder)
                records = {path: self._copy(path, found) for path, found in things.items()}
                with self.files.opened("") as descriptor:
                    sync_filesystem(descriptor)  # a file that a power cut emptied must not look like the worker's doing
        except BaseException:
            forget_unfinished(self.files, self.metadata, self.sandbox)
            raise
        for path in records:
            self.metadata.kept.pop(path, None)
        self.metadata.files |= records
        self.metadata.folders |= folders
        self.metadata.copying = []
        self.metadata.write(self.sandbox)
        return CopyResult(copied=tuple(sorted(records)), left_out=left_out)

    def _chosen(self, name: str, left_out: dict[str, str]) -> dict[TreePath, FoundEntry]:
        """What a path, a folder's path or a pattern stands for. Only what is named itself is never ignored."""
        pattern = check_pattern(name)
        found = self.base.find(pattern)
        if found is not None and found.kind is None:
            raise InvalidInput(f"{pattern} is neither a file, a folder nor a link: it cannot be copied.")
        if found is not None and found.kind is not EntryKind.DIRECTORY:
            return {TreePath(pattern): found}
        is_pattern = found is None and any(wild in pattern for wild in "*?")
        if found is None and not is_pattern:
            raise NotFound(f"There is no {pattern} in the base folder (links on the way are not followed).")
        top = pattern if not is_pattern else parent_of(pattern.partition("*")[0].partition("?")[0])[0]
        chosen = {} if found is None else {TreePath(pattern): found}
        rules = self.rules.inside(top)

        def ignores(path: str, is_folder: bool) -> bool:
            return rules.ignored_by(path, is_folder=is_folder) is not None

        for path, below in self.base.walk(top, left_out=left_out, ignores=ignores):
            if below.kind is None:
                left_out[path] = "It is neither a file, a folder nor a link."
            elif not is_pattern or (below.kind is not EntryKind.DIRECTORY and overlap(pattern, path)):
                chosen[path] = below
        if not chosen:
            raise NotFound(f"Nothing in the base folder matches {pattern}.")
        return chosen

    def _check_free(self, path: TreePath, chosen: FoundEntry) -> None:
        """What the worker has done there is not overwritten, unless it is kept beside the base folder's version."""
        there = self.files.find(path)
        if there is None or (there.kind is EntryKind.DIRECTORY and chosen.kind is EntryKind.DIRECTORY):
            return
        kept = self.metadata.kept.get(path)
        with contextlib.suppress(OSError):  # neither a file nor a link: surely the worker's doing
            now, _ = self.files.record(path)
            if now == self.metadata.files.get(path) or (kept is not None and kept.content == now.content):
                return
        raise Conflict(f"The sandbox has changes in {path} that are not synced back; sync back first.", path=path)

    def _copy(self, path: TreePath, found: FoundEntry) -> FileRecord:
        self.files.remove(path)
        if found.kind is EntryKind.SYMLINK:
            target = self.base.link_target(path)
            self.files.make_link(path, target)
            return FileRecord(kind=EntryKind.SYMLINK, content=self.contents.put_bytes(target), mode=0)
        source = self.base.open_file(path)
        try:
            status = os.fstat(source)
            content = self.contents.put(source)
        finally:
            os.close(source)
        with self.files.new_file(path) as copy:
            self.contents.copy_to(content, copy)
            os.fchmod(copy, status.st_mode & 0o777)
            os.utime(copy, ns=(status.st_mtime_ns, status.st_mtime_ns))
        return FileRecord(kind=EntryKind.FILE, content=content, mode=status.st_mode & 0o777)


def forget_unfinished(files: Tree, metadata: Metadata, sandbox: Path) -> None:
    """Take out what a copy that did not come to its end left in any state: nothing of the worker's is among it."""
    for path in metadata.copying:
        files.remove(path)
        metadata.files.pop(path, None)
    if metadata.copying:
        metadata.copying = []
        metadata.write(sandbox)
