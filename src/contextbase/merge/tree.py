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
| made a folder       | has a file in it                | unchanged                                             |
| retargeted symlink  | retargeted symlink              | conflict, symlinks are never merged as text           |
"""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace
from enum import StrEnum
from heapq import heappop, heappush
from typing import Final, Protocol

from contextbase.ids import ContentHash, TreePath
from contextbase.merge.engine import merge
from contextbase.merge.model import Merged, MergeOutcome
from contextbase.merge.policy import MergePolicy, Strategy
from contextbase.vocabulary import TreeConflict

__all__ = [
    "EntryKind",
    "Head",
    "Merging",
    "Settled",
    "TooLargeToMerge",
    "TreeChange",
    "TreeConflict",
    "TreeEntry",
    "Verdict",
    "settle",
]


class EntryKind(StrEnum):
    FILE = "file"
    SYMLINK = "symlink"
    DIRECTORY = "directory"


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeEntry:
    kind: EntryKind = EntryKind.FILE
    content: ContentHash | None = None  # a symlink's target for a symlink; None for a directory
    executable: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class TreeChange:
    path: TreePath  # where it shall stand
    entry: TreeEntry | None  # None: it shall be gone
    base: TreeEntry | None  # what the writer started from; None: it was not there
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


@dataclass(frozen=True, kw_only=True, slots=True)
class Settled:
    change: TreeChange
    verdict: Verdict
    path: TreePath  # where the result stands: another than asked for if the head renamed it
    entry: TreeEntry | None = None  # the result; None: nothing stands there, or (conflict) nothing changes
    new_content: bytes | None = None  # what the merge made: content of the result that no side has yet
    removed: TreePath | None = None  # the old place of a rename
    conflict: TreeConflict | None = None
    merged: Merged | None = None  # how the contents were merged, if they were


class Head(Protocol):
    """The tree as it is now."""

    def entry(self, path: TreePath) -> TreeEntry | None: ...

    def below(self, folder: TreePath) -> Iterable[TreePath]:
        """Every path inside the folder, at any depth."""
        ...

    def renamed_to(self, path: TreePath) -> TreePath | None:
        """Where the file that stood here in the writer's base stands now, if someone has renamed it since."""
        ...

    def rank(self, path: TreePath) -> int:
        """The rank of who wrote what stands here: for the strategy `priority`."""
        ...


class Merging(Protocol):
    """`merge`, or what stands for it."""

    def __call__(
        self, base: bytes | None, ours: bytes | None, theirs: bytes | None, *, path: str, policy: MergePolicy
    ) -> Merged: ...


_UNTOUCHED: Final = TreeEntry()  # stands for whatever the head has
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
    changes: Sequence[TreeChange],
    head: Head,
    read: Callable[[ContentHash], bytes],
    *,
    policy: MergePolicy | None = None,
    merging: Merging = merge,
) -> tuple[Settled, ...]:
    """One answer per change, in the order given. Deletions take effect first, the deepest before all, and renames
    before what needs the room that they make: a file may take the place of a folder that the same change set removes
    or empties.

    Contents are compared by name; `read` is asked only for those that have to be merged.
    """
    leaving = {change.renamed_from for change in changes if change.renamed_from is not None}
    work = _Settlement(head, read, policy or MergePolicy(), leaving, merging)
    answers = {index: work.settle(changes[index]) for index in _order(changes, head)}
    return tuple(answers[index] for index in range(len(changes)))


def _order(changes: Sequence[TreeChange], head: Head) -> list[int]:
    """The changes' indexes, as they take effect. Renames that need each other's room keep the order given."""
    order = sorted(range(len(changes)), key=lambda index: _turn(changes[index]))
    waits_for = _needed_room(changes, head)
    if not waits_for:
        return order
    awaited_by: dict[int, list[int]] = defaultdict(list)
    for index, others in waits_for.items():
        for other in others:
            awaited_by[other].append(index)
    place = {index: position for position, index in enumerate(order)}
    ready = [position for position, index in enumerate(order) if index not in waits_for]
    sorted_out: list[int] = []
    while ready:
        index = order[heappop(ready)]
        sorted_out.append(index)
        for waiting in awaited_by[index]:
            waits_for[waiting].discard(index)
            if not waits_for[waiting]:
                heappush(ready, place[waiting])
    return sorted_out + sorted(place.keys() - set(sorted_out), key=place.__getitem__)


def _needed_room(changes: Sequence[TreeChange], head: Head) -> dict[int, set[int]]:
    """By its index, the renames that a change has to wait for: of a file above its place, or of what lies below it,
    unless it makes a folder there."""
    sources: dict[TreePath, int] = {}
    below: dict[TreePath, set[int]] = defaultdict(set)  # by every folder above them
    for index, change in enumerate(changes):
        if change.renamed_from is not None:
            source = head.renamed_to(change.renamed_from) or change.renamed_from
            sources[source] = index
            for folder in source.folders:
                below[folder].add(index)
    needed: dict[int, set[int]] = {}
    for index, change in enumerate(changes) if sources else ():
        if change.entry is None:
            continue
        others = {sources[folder] for folder in change.path.folders if folder in sources}
        if change.entry.kind is not EntryKind.DIRECTORY:
            others |= below.get(change.path, set())
        if others - {index}:
            needed[index] = others - {index}
    return needed


def _turn(change: TreeChange) -> tuple[bool, int]:
    return change.entry is not None, -len(change.path.parts) if change.entry is None else 0


class _Settlement:
    def __init__(
        self,
        head: Head,
        read: Callable[[ContentHash], bytes],
        policy: MergePolicy,
        leaving: AbstractSet[TreePath],
        merging: Merging,
    ) -> None:
        self.leaving = leaving  # what is yet to be renamed: a folder may be deleted, or made, before that
        self.head = head
        self.merging = merging
        self.read = read
        self.policy = policy
        self.done: dict[TreePath, TreeEntry | None] = {}
        self.made: dict[ContentHash, bytes] = {}  # by merges; nobody else has it yet
        self._put_below: Counter[TreePath] = Counter()  # how many entries of `done` stand below each folder

    def settle(self, change: TreeChange) -> Settled:
        settled = self._delete(change) if change.entry is None else self._write(change, change.entry)
        if settled.verdict is not Verdict.CONFLICT:
            if settled.new_content is not None:
                self.made[ContentHash.of(settled.new_content)] = settled.new_content
            if settled.removed is not None:
                self._put(settled.removed, None)
            self._put(settled.path, settled.entry)
        return settled

    def _put(self, path: TreePath, entry: TreeEntry | None) -> None:
        more = (entry is not None) - (self.done.get(path) is not None)
        self.done[path] = entry
        folder = path.parent if more else None
        while folder is not None:
            self._put_below[folder] += more
            folder = folder.parent

    def _entry(self, path: TreePath) -> TreeEntry | None:
        return self.done[path] if path in self.done else self.head.entry(path)

    def _delete(self, change: TreeChange) -> Settled:
        path = self.head.renamed_to(change.path) or change.path
        current = self._entry(path)
        if current is None:
            return Settled(change=change, verdict=Verdict.UNCHANGED, path=path)
        if current.kind is EntryKind.DIRECTORY and self._keeps_below(path):
            return _conflict(change, path, TreeConflict.FOLDER_NOT_EMPTY)
        if path != change.path or current != change.base:
            return _conflict(change, path, TreeConflict.DELETED_AND_CHANGED)
        return Settled(change=change, verdict=Verdict.DELETED, path=path)

    def _write(self, change: TreeChange, entry: TreeEntry) -> Settled:
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
        if entry.kind is EntryKind.DIRECTORY and change.base is None and current is None and self._keeps_below(path):
            return Settled(change=change, verdict=Verdict.UNCHANGED, path=path)  # it is there, for what is in it
        settled = self._merge(change, path, current, entry)
        if path != change.path and settled.verdict is Verdict.WRITTEN:
            return replace(settled, verdict=Verdict.MERGED)  # with the rename
        if path != current_path and settled.verdict is not Verdict.CONFLICT:
            verdict = Verdict.WRITTEN if settled.verdict is Verdict.UNCHANGED else settled.verdict
            return replace(settled, verdict=verdict, removed=current_path)
        return settled

    def _unless_equal(self, change: TreeChange, path: TreePath, entry: TreeEntry, conflict: TreeConflict) -> Settled:
        if self._entry(path) == entry:
            return Settled(change=change, verdict=Verdict.UNCHANGED, path=path, entry=entry)
        return _conflict(change, path, conflict)

    def _merge(self, change: TreeChange, path: TreePath, current: TreeEntry | None, entry: TreeEntry) -> Settled:
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
            whole = Merged(
                content=None, outcome=MergeOutcome.MERGED, strategy=Strategy.LAST_WRITER, notes=(str(problem),)
            )
            return Settled(change=change, verdict=Verdict.MERGED, path=path, entry=result, merged=whole)
        merged = self.merging(*sides, path=path, policy=self._policy(change, path))
        if merged.outcome is MergeOutcome.CONFLICT or merged.content is None:
            return _conflict(change, path, TreeConflict.CONTENT, merged)
        result = TreeEntry(kind=EntryKind.FILE, content=ContentHash.of(merged.content), executable=executable)
        if result == current:
            lost = merged.other is not None and ContentHash.of(merged.other) == entry.content
            verdict = Verdict.SUPERSEDED if lost else Verdict.UNCHANGED
            return Settled(change=change, verdict=verdict, path=path, entry=result, merged=merged)
        new = None if result.content == entry.content else merged.content
        return Settled(change=change, verdict=Verdict.MERGED, path=path, entry=result, new_content=new, merged=merged)

    def _bytes(self, entry: TreeEntry | None) -> bytes | None:
        if entry is None or entry.content is None:
            return None
        made = self.made.get(entry.content)
        return self.read(entry.content) if made is None else made

    def _policy(self, change: TreeChange, path: TreePath) -> MergePolicy:
        """A rename obeys the stricter of the policies of both places."""
        strategies = {self.policy.strategy_for(place) for place in (path, change.renamed_from or path)}
        strictest = min(strategies, key=_STRICTEST_FIRST.index)
        policy = self.policy.with_only(strictest)
        if strictest is Strategy.PRIORITY:
            return replace(policy, ours_rank=self.head.rank(change.renamed_from or path))
        return policy

    def _is_blocked(self, path: TreePath, entry: TreeEntry, leaving: TreePath | None) -> bool:
        """Whether a file stands where a folder is needed, or a folder with something in it where a file shall be."""
        folder = path.parent
        while folder is not None:
            above = self._entry(folder)
            if above is not None and above.kind is not EntryKind.DIRECTORY and folder != leaving:
                return True
            folder = folder.parent
        return entry.kind is not EntryKind.DIRECTORY and self._has_below(path, leaving=leaving)

    def _keeps_below(self, folder: TreePath) -> bool:
        """Whether a folder has something in it that is not deleted or renamed by this change set."""
        inside = (place for place in self.head.below(folder) if place not in self.leaving)
        return self._put_below[folder] > 0 or any(self.done.get(place, _UNTOUCHED) is not None for place in inside)

    def _has_below(self, path: TreePath, *, leaving: TreePath | None = None) -> bool:
        leaves = leaving is not None and leaving.is_below(path) and self.done.get(leaving) is not None
        if self._put_below[path] > leaves:
            return True
        return any(place != leaving and self.done.get(place, _UNTOUCHED) is not None for place in self.head.below(path))


def _conflict(change: TreeChange, path: TreePath, conflict: TreeConflict, merged: Merged | None = None) -> Settled:
    return Settled(change=change, verdict=Verdict.CONFLICT, path=path, conflict=conflict, merged=merged)
