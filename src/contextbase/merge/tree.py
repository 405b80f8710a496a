"""What becomes of a change set: each change against the tree as it is now, one answer per change.

| writer              | head meanwhile                  | answer                                                |
|---------------------|---------------------------------|-------------------------------------------------------|
| wrote               | same as base                    | written                                               |
| wrote               | wrote                           | merged, or conflict                                   |
| wrote               | renamed it to b                 | merged at b                                           |
| wrote               | deleted                         | conflict, deleted-and-changed                         |
| added               | added                           | unchanged if equal, else merged without a base        |
| deleted             | wrote                           | conflict, deleted-and-changed                         |
| deleted             | deleted                         | unchanged                                             |
| renamed to b        | wrote                           | merged at b                                           |
| renamed to b        | renamed to b                    | merged at b                                           |
| renamed to b        | renamed to c                    | conflict, renamed-twice                               |
| wrote file a        | has a/x                         | conflict, file-and-folder; also the other way round   |
| changed kind        | wrote                           | conflict, kind-changed                                |
| retargeted symlink  | retargeted symlink              | conflict, symlinks are never merged as text           |
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final, Protocol

from contextbase.ids import ContentHash, TreePath
from contextbase.merge.engine import merge
from contextbase.merge.model import Merged, Outcome
from contextbase.merge.policy import MergePolicy, Strategy

__all__ = ["Change", "Entry", "EntryKind", "Head", "Settled", "TooLargeToMerge", "TreeConflict", "Verdict", "settle"]


class EntryKind(StrEnum):
    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"


@dataclass(frozen=True, kw_only=True, slots=True)
class Entry:
    kind: EntryKind = EntryKind.FILE
    content: ContentHash | None = None  # a symlink's target for a symlink; None for a directory
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Change:
    path: TreePath  # where it shall stand
    entry: Entry | None  # None: it shall be gone
    base: Entry | None  # what the writer started from; None: it was not there
    renamed_from: TreePath | None = None  # where `base` stood, if not at `path`


class Verdict(StrEnum):
    WRITTEN = "written"
    MERGED = "merged"
    DELETED = "deleted"
    UNCHANGED = "unchanged"
    SUPERSEDED = "superseded"  # the policy prefers the head; the writer's side is to be kept aside
    CONFLICT = "conflict"


class TooLargeToMerge(Exception):
    """Raised by a reader for content that is not worth holding in memory: the last writer's file is taken whole."""


class TreeConflict(StrEnum):
    CONTENT = "content"
    DELETED_AND_CHANGED = "deleted-and-changed"
    RENAMED_TWICE = "renamed-twice"
    FILE_AND_FOLDER = "file-and-folder"
    FOLDER_NOT_EMPTY = "folder-not-empty"
    KIND_CHANGED = "kind-changed"


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    change: Change
    verdict: Verdict
    path: TreePath  # where the result stands: another than asked for if the head renamed it
    entry: Entry | None = None  # the result; None: nothing stands there, or (conflict) nothing changes
    new_content: bytes | None = None  # what the merge made: content of the result that no side has yet
    removed: TreePath | None = None  # the old place of a rename
    conflict: TreeConflict | None = None
    merged: Merged | None = None  # how the contents were merged, if they were


class Head(Protocol):
    """The tree as it is now."""

    def entry(self, path: TreePath) -> Entry | None: ...

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        """Every path inside the folder, at any depth."""
        ...

    def renamed_to(self, path: TreePath) -> TreePath | None:
        """Where the file that stood here in the writer's base stands now, if someone has renamed it since."""
        ...

    def rank(self, path: TreePath) -> int:
        """The rank of who wrote what stands here: for the strategy `priority`."""
        ...


_UNTOUCHED: Final = Entry()  # stands for whatever the head has
_STRICTEST_FIRST: Final = (
    Strategy.REVIEW,
    Strategy.AUTO,
    Strategy.PRIORITY,
    Strategy.CRDT,
    Strategy.UNION,
    Strategy.OURS,
    Strategy.THEIRS,
    Strategy.LAST_WRITER,
)


def settle(
    changes: Sequence[Change], head: Head, read: Callable[[ContentHash], bytes], *, policy: MergePolicy | None = None
) -> tuple[Settled, ...]:
    """One answer per change, in the order given. Deletions take effect first, the deepest before all: a file may take
    the place of a folder that the same change set removes.

    Contents are compared by name; `read` is asked only for those that have to be merged.
    """
    work = _Settlement(head, read, policy or MergePolicy())
    order = sorted(range(len(changes)), key=lambda index: _turn(changes[index]))
    answers = {index: work.settle(changes[index]) for index in order}
    return tuple(answers[index] for index in range(len(changes)))


def _turn(change: Change) -> tuple[bool, int]:
    return change.entry is not None, -len(change.path.parts) if change.entry is None else 0


class _Settlement:
    def __init__(self, head: Head, read: Callable[[ContentHash], bytes], policy: MergePolicy) -> None:
        self.head = head
        self.read = read
        self.policy = policy
        self.done: dict[TreePath, Entry | None] = {}
        self._put_below: Counter[TreePath] = Counter()  # how many entries of `done` stand below each folder

    def settle(self, change: Change) -> Settled:
        settled = self._delete(change) if change.entry is None else self._write(change, change.entry)
        if settled.verdict is not Verdict.CONFLICT:
            if settled.removed is not None:
                self._put(settled.removed, None)
            self._put(settled.path, settled.entry)
        return settled

    def _put(self, path: TreePath, entry: Entry | None) -> None:
        more = (entry is not None) - (self.done.get(path) is not None)
        self.done[path] = entry
        folder = path.parent if more else None
        while folder is not None:
            self._put_below[folder] += more
            folder = folder.parent

    def _entry(self, path: TreePath) -> Entry | None:
        return self.done[path] if path in self.done else self.head.entry(path)

    def _delete(self, change: Change) -> Settled:
        path = self.head.renamed_to(change.path) or change.path
        current = self._entry(path)
        if current is None:
            return Settled(change=change, verdict=Verdict.UNCHANGED, path=path)
        if current.kind is EntryKind.DIRECTORY and self._has_below(path):
            return _conflict(change, path, TreeConflict.FOLDER_NOT_EMPTY)
        if path != change.path or current != change.base:
            return _conflict(change, path, TreeConflict.DELETED_AND_CHANGED)
        return Settled(change=change, verdict=Verdict.DELETED, path=path)

    def _write(self, change: Change, entry: Entry) -> Settled:
        source = change.renamed_from or change.path
        moved = self.head.renamed_to(source) if change.base is not None else None
        if change.renamed_from is not None and moved not in (None, change.path):
            return _conflict(change, change.path, TreeConflict.RENAMED_TWICE)
        current_path = moved or source
        path = change.path if change.renamed_from is not None else current_path
        current = self._entry(current_path)
        if change.base is not None and current is None:
            return self._unless_equal(change, path, entry, TreeConflict.DELETED_AND_CHANGED)
        if path != current_path and self._entry(path) is not None:
            return self._unless_equal(change, path, entry, TreeConflict.CONTENT)
        if self._is_blocked(path, entry, leaving=current_path if path != current_path else None):
            return _conflict(change, path, TreeConflict.FILE_AND_FOLDER)
        settled = self._merge(change, path, current, entry)
        if path != change.path and settled.verdict is Verdict.WRITTEN:
            return replace(settled, verdict=Verdict.MERGED)  # with the rename
        if path != current_path and settled.verdict is not Verdict.CONFLICT:
            verdict = Verdict.WRITTEN if settled.verdict is Verdict.UNCHANGED else settled.verdict
            return replace(settled, verdict=verdict, removed=current_path)
        return settled

    def _unless_equal(self, change: Change, path: TreePath, entry: Entry, conflict: TreeConflict) -> Settled:
        if self._entry(path) == entry:
            return Settled(change=change, verdict=Verdict.UNCHANGED, path=path, entry=entry)
        return _conflict(change, path, conflict)

    def _merge(self, change: Change, path: TreePath, current: Entry | None, entry: Entry) -> Settled:
        base = change.base
        if current == entry or (current is not None and base == entry):
            return Settled(change=change, verdict=Verdict.UNCHANGED, path=path, entry=current)
        if current == base or current is None:
            return Settled(change=change, verdict=Verdict.WRITTEN, path=path, entry=entry)
        if current.kind is not entry.kind or (base is not None and base.kind is not entry.kind):
            return _conflict(change, path, TreeConflict.KIND_CHANGED)
        executable = entry.executable if base is None or current.executable == base.executable else current.executable
        if entry.kind is EntryKind.SYMLINK:
            if base is None or base.content not in (current.content, entry.content):
                return _conflict(change, path, TreeConflict.CONTENT)
            content = entry.content if current.content == base.content else current.content
            return Settled(change=change, verdict=Verdict.MERGED, path=path, entry=replace(entry, content=content))
        try:
            sides = (self._bytes(base), self._bytes(current), self._bytes(entry))
        except TooLargeToMerge as problem:
            result = replace(entry, executable=executable)
            whole = Merged(content=None, outcome=Outcome.MERGED, strategy=Strategy.LAST_WRITER, notes=(str(problem),))
            return Settled(change=change, verdict=Verdict.MERGED, path=path, entry=result, merged=whole)
        merged = merge(*sides, path=path, policy=self._policy(change, path))
        if merged.outcome is Outcome.CONFLICT or merged.content is None:
            return _conflict(change, path, TreeConflict.CONTENT, merged)
        result = Entry(kind=EntryKind.FILE, content=ContentHash.of(merged.content), executable=executable)
        if result == current:
            lost = merged.other is not None and ContentHash.of(merged.other) == entry.content
            verdict = Verdict.SUPERSEDED if lost else Verdict.UNCHANGED
            return Settled(change=change, verdict=verdict, path=path, entry=result, merged=merged)
        new = None if result.content == entry.content else merged.content
        return Settled(change=change, verdict=Verdict.MERGED, path=path, entry=result, new_content=new, merged=merged)

    def _bytes(self, entry: Entry | None) -> bytes | None:
        return None if entry is None or entry.content is None else self.read(entry.content)

    def _policy(self, change: Change, path: TreePath) -> MergePolicy:
        """A rename obeys the stricter of the policies of both places."""
        strategies = {self.policy.strategy_for(place) for place in (path, change.renamed_from or path)}
        strictest = min(strategies, key=_STRICTEST_FIRST.index)
        policy = self.policy.with_only(strictest)
        if strictest is Strategy.PRIORITY:
            return replace(policy, ours_rank=self.head.rank(change.renamed_from or path))
        return policy

    def _is_blocked(self, path: TreePath, entry: Entry, leaving: TreePath | None) -> bool:
        """Whether a file stands where a folder is needed, or a folder with something in it where a file shall be."""
        folder = path.parent
        while folder is not None:
            above = self._entry(folder)
            if above is not None and above.kind is not EntryKind.DIRECTORY and folder != leaving:
                return True
            folder = folder.parent
        return entry.kind is not EntryKind.DIRECTORY and self._has_below(path, leaving=leaving)

    def _has_below(self, path: TreePath, *, leaving: TreePath | None = None) -> bool:
        leaves = leaving is not None and leaving.is_below(path) and self.done.get(leaving) is not None
        if self._put_below[path] > leaves:
            return True
        return any(place != leaving and self.done.get(place, _UNTOUCHED) is not None for place in self.head.below(path))


def _conflict(change: Change, path: TreePath, conflict: TreeConflict, merged: Merged | None = None) -> Settled:
    return Settled(change=change, verdict=Verdict.CONFLICT, path=path, conflict=conflict, merged=merged)
