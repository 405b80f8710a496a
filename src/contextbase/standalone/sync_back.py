"""What a worker did, back into the base folder: one file after the other, each merged under its lease.

The order makes a crash harmless: the new version is written whole beside the base folder's files and flushed, the
intent is noted, and then one rename puts it in its place, inside the lease's fence, and only if what stands there is
still what the merge was made with. After a crash the notes say which renames happened.
"""

import errno
import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

from contextbase.errors import ContextbaseError
from contextbase.ids import TreePath
from contextbase.leases import Lease, SyncLeases
from contextbase.merge import EntryKind, Settled, Strategy, TreeChange, TreeConflict, TreeEntry, Verdict, settle
from contextbase.standalone.base_folder import BaseFolder
from contextbase.standalone.contents import ContentFolder
from contextbase.standalone.detection import WorkerChange, detect
from contextbase.standalone.head import BaseHead, Moved
from contextbase.standalone.metadata import Intent, Journal, Metadata
from contextbase.standalone.model import FileRecord, FileResult, KeptVersion, SyncOutcome, SyncResult
from contextbase.standalone.tree import Tree, parent_of
from contextbase.workspaces.ignore_rules import IgnoreTree

__all__ = ["SyncBack"]

_TRIES: Final = 10
_NOT_EMPTY: Final = {errno.ENOTEMPTY, errno.EEXIST}
_WHY: Final = {
    TreeConflict.CONTENT: "Both changed it, in the same places.",
    TreeConflict.DELETED_AND_CHANGED: "One deleted it, the other changed it.",
    TreeConflict.FILE_AND_FOLDER: "One needs a file there, the other a folder.",
    TreeConflict.FOLDER_NOT_EMPTY: "There is something in the folder.",
    TreeConflict.KIND_CHANGED: "Both changed it, and one made another kind of thing of it.",
}
_ONE_WOULD_LOSE: Final = "Both changed it, and it cannot be merged: it is binary, or too large."


@dataclass(frozen=True, kw_only=True, slots=True)
class SyncBack:
    base: BaseFolder
    files: Tree
    contents: ContentFolder
    metadata: Metadata
    journal: Journal
    sandbox: Path
    leases: SyncLeases
    rules: IgnoreTree
    lease_timeout: float
    time: str  # names the folder for this sync's conflicts

    def run(self, tell: Callable[[FileResult], None]) -> SyncResult:
        """`tell` is called with each result as soon as it is known."""
        self.recover()
        detected = detect(self.files, self.metadata, self.rules)
        results: list[FileResult] = []

        def add(result: FileResult) -> None:
            results.append(result)
            tell(result)

        for path, why in detected.failed.items():
            add(FileResult(path=path, outcome=SyncOutcome.FAILED, reason=why))
        for change in detected.deletions:
            add(self._explained(change.path, partial(self._sync, change)))
        for folder in detected.gone_folders:
            self._remove_if_empty(folder, add)
        for change in detected.writes:
            add(self._explained(change.path, partial(self._sync, change)))
        for folder in detected.new_folders:
            add(self._explained(folder, partial(self._make, folder)))
        self.metadata.counts["syncs"] += 1
        self.metadata.counts.update(result.outcome.value for result in results)
        self.metadata.write(self.sandbox)
        self.journal.clear()
        return SyncResult(files=tuple(results))

    def recover(self) -> None:
        """Find out what an interrupted sync has done. A draft that is still there was not moved; one that is gone was,
        unless somebody cleared the folder: then the old version still stands."""
        intents = self.journal.read()
        for intent in intents:
            if not self.base.has_draft(intent.draft) and not self._stands(intent):
                self._done(intent.path, intent.record)
        for draft in self.base.drafts_of(self.metadata.sandbox_id):
            self.base.discard_draft(draft)
        if intents:
            self.metadata.write(self.sandbox)
            self.journal.clear()

    def _stands(self, intent: Intent) -> bool:
        record = BaseHead(self.base, self.contents, intent.path).record
        return (record and record.content) == intent.before

    def _explained(self, path: str, sync: Callable[[], FileResult]) -> FileResult:
        """What goes wrong with one file is no reason to leave out the others."""
        try:
            return sync()
        except ContextbaseError as error:
            return FileResult(path=path, outcome=SyncOutcome.FAILED, reason=error.message)
        except OSError as error:
            return FileResult(path=path, outcome=SyncOutcome.FAILED, reason=f"{error.strerror}.")

    def _sync(self, change: WorkerChange) -> FileResult:
        self._take_in(change)
        pattern = re.sub(r"[*?]+", "*", change.path)  # a name with a star reserves a little more than itself
        owner = self.metadata.worker_id
        with self.leases.holding(pattern, owner=owner, timeout=self.lease_timeout) as lease:
            for _ in range(_TRIES):
                try:
                    return self._settle(change, lease)
                except Moved:
                    continue
        reason = "It keeps changing in the base folder; sync back again."
        return FileResult(path=change.path, outcome=SyncOutcome.FAILED, reason=reason)

    def _take_in(self, change: WorkerChange) -> None:
        """The worker's version, as it was looked at: from here on it cannot change, and later merges start from it."""
        if change.now is None or self.contents.has(change.now.content):
            return
        if change.now.kind is EntryKind.SYMLINK:
            taken = self.contents.put_bytes(self.files.link_target(change.path))
        else:
            source = self.files.open_file(change.path)
            try:
                taken = self.contents.put(source, durably=True)
            finally:
                os.close(source)
        if taken != change.now.content:
            raise OSError(0, "It is being changed while it is read; sync back again", change.path)

    def _settle(self, change: WorkerChange, lease: Lease) -> FileResult:
        head = BaseHead(self.base, self.contents, change.path)
        wanted = TreeChange(path=change.path, entry=_entry(change.now), base=_entry(change.given))
        (settled,) = settle([wanted], head, head.read)
        if settled.verdict is Verdict.CONFLICT:
            reason = _WHY[settled.conflict or TreeConflict.CONTENT]
            return self._conflict(change, reason)
        if settled.merged is not None and settled.merged.strategy == Strategy.LAST_WRITER:
            return self._conflict(change, _ONE_WOULD_LOSE)  # the gate keeps the loser in its history; a folder has none
        if settled.verdict is Verdict.DELETED:
            with self.leases.fenced(lease):
                head.check()
                self.base.remove(change.path)
            self._done(change.path, None)
            self.base.flush_parent(change.path)
            return FileResult(path=change.path, outcome=SyncOutcome.SUCCESS, action="deleted")
        if settled.verdict is Verdict.UNCHANGED:
            self._keep_mode(change, head, lease)
            self._done(change.path, change.now)
            return FileResult(path=change.path, outcome=SyncOutcome.SUCCESS, action="unchanged")
        kept_at = self._keep_loser(change, settled)
        self._write(change, settled, head, lease)
        outcome = SyncOutcome.MERGED if settled.verdict is Verdict.MERGED else SyncOutcome.SUCCESS
        return FileResult(path=change.path, outcome=outcome, action="written", kept_at=kept_at)

    def _keep_loser(self, change: WorkerChange, settled: Settled) -> str:
        """A `*.crdt.json` never conflicts; where both changed one value, what stood in the base folder is kept."""
        other = settled.merged.other if settled.merged else None
        if other is None or change.now is None:
            return ""
        record = FileRecord(kind=EntryKind.FILE, content=self.contents.put_bytes(other), mode=change.now.mode)
        return self.base.keep(self.metadata.worker_id, self.time, change.path, record, self.contents)

    def _write(self, change: WorkerChange, settled: Settled, head: BaseHead, lease: Lease) -> None:
        entry, now = settled.entry, change.now
        if entry is None or entry.content is None or now is None:
            raise RuntimeError(f"a merge without a result: {settled}")
        if settled.new_content is not None:
            self.contents.put_bytes(settled.new_content)
        mode = _merged_mode(change.given, head.record, now) if entry.kind is EntryKind.FILE else 0
        result = FileRecord(kind=entry.kind, content=entry.content, mode=mode)
        self.base.make_folder(parent_of(change.path)[0])
        owner = self.base.owner_for(change.path, head.found)
        draft = self.base.draft(self.metadata.sandbox_id, result, self.contents, owner=owner)
        try:
            before = head.record.content if head.record else None
            self.journal.append(Intent(path=change.path, draft=draft, before=before, record=now))
            with self.leases.fenced(lease):
                head.check()
                self.base.move_draft(draft, change.path)
        except BaseException:
            if self.base.has_draft(draft):
                self.journal.cancel(draft)  # first: a draft that is gone counts as moved
                self.base.discard_draft(draft)
            raise
        self._done(change.path, now)
        self.base.flush_parent(change.path)

    def _keep_mode(self, change: WorkerChange, head: BaseHead, lease: Lease) -> None:
        if change.now is None or head.record is None or change.now.kind is not EntryKind.FILE:
            return
        mode = _merged_mode(change.given, head.record, change.now)
        if mode != head.record.mode:
            with self.leases.fenced(lease):
                head.check()
                self.base.change_mode(change.path, mode)

    def _conflict(self, change: WorkerChange, reason: str) -> FileResult:
        now, kept = change.now, self.metadata.kept.get(change.path)
        content = now.content if now else None
        if kept is None or kept.content != content or (kept.at and self.base.find(kept.at) is None):
            worker, time = self.metadata.worker_id, self.time
            at = self.base.keep(worker, time, change.path, now, self.contents) if now else ""
            kept = KeptVersion(content=content, at=at)
            self.metadata.kept[change.path] = kept
        return FileResult(path=change.path, outcome=SyncOutcome.CONFLICT, reason=reason, kept_at=kept.at)

    def _done(self, path: TreePath, record: FileRecord | None) -> None:
        """From now on the worker's version is what its next changes are measured against: it is part of what stands in
        the base folder, and what others added there is not in it, so it must not count as given."""
        self.metadata.kept.pop(path, None)
        if record is None:
            self.metadata.files.pop(path, None)
        else:
            self.metadata.files[path] = record

    def _remove_if_empty(self, folder: TreePath, add: Callable[[FileResult], None]) -> None:
        self.metadata.folders.discard(folder)
        found = self.base.find(folder)
        if found is None or found.kind is not EntryKind.DIRECTORY:
            return
        try:
            self.base.remove(folder)
        except OSError as error:
            if error.errno not in _NOT_EMPTY:  # others have something in it, and so it stays
                add(FileResult(path=folder, outcome=SyncOutcome.FAILED, reason=f"{error.strerror}."))

    def _make(self, folder: TreePath) -> FileResult:
        self.base.make_folder(folder)
        with self.base.opened(folder):  # a file in its place is an error
            self.metadata.folders.add(folder)
        return FileResult(path=folder, outcome=SyncOutcome.SUCCESS, action="written")


def _entry(record: FileRecord | None) -> TreeEntry | None:
    """Without the mode: `_merged_mode` keeps all of it, not the one bit."""
    return None if record is None else TreeEntry(kind=record.kind, content=record.content)


def _merged_mode(given: FileRecord | None, ours: FileRecord | None, theirs: FileRecord) -> int:
    """Who changed it, wins; if both did, the base folder."""
    if ours is None or ours.kind is not EntryKind.FILE:
        return theirs.mode
    return theirs.mode if given is not None and ours.mode == given.mode else ours.mode
