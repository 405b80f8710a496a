"""The basic index of a place, in memory: every folder with its entries and its sums. Pure, and never changed.

A change makes new folders from the changed ones up to the top and shares all others, so that a tree of 100,000 files
that differs from another in ten costs what the ten cost.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, NamedTuple

from contextbase.ids import TreePath
from contextbase.storage.model import Kind

__all__ = ["EMPTY", "Change", "FileLeaf", "FolderNode", "Mark", "Sums", "built", "changed", "differences", "filtered"]


class FileLeaf(NamedTuple):
    """A file or link. A tuple, because a tree of 100,000 is made from as many."""

    kind: Kind
    size: int
    modified_ns: int
    mime: str = ""  # empty: not looked at yet
    executable: bool = False
    stamp: int = 0  # of a file in a folder on this machine: changes with the content, whatever its other times say

    def looks_like(self, other: "FileLeaf | None") -> bool:
        """Whether nothing shows that it is another, or was changed."""
        if other is None or (self.kind, self.size, self.modified_ns) != (other.kind, other.size, other.modified_ns):
            return False
        return self.executable == other.executable and (self.stamp == other.stamp or 0 in (self.stamp, other.stamp))


@dataclass(frozen=True, slots=True)
class Sums:
    """Of everything below a folder."""

    files: int = 0  # links count as files
    folders: int = 0
    bytes: int = 0
    newest_ns: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class FolderNode:
    files: Mapping[str, FileLeaf]
    folders: "Mapping[str, FolderNode]"
    stands: bool = False  # whether it is there with nothing in it, too
    modified_ns: int = 0  # 0: when what is in it changed last
    sums: Sums = field(init=False)

    def __post_init__(self) -> None:
        files, folders, size, newest = len(self.files), len(self.folders), 0, self.modified_ns
        for leaf in self.files.values():
            size += leaf.size
            newest = max(newest, leaf.modified_ns)
        for folder in self.folders.values():
            below = folder.sums
            files += below.files
            folders += below.folders
            size += below.bytes
            newest = max(newest, below.newest_ns)
        object.__setattr__(self, "sums", Sums(files, folders, size, newest))

    @property
    def is_there(self) -> bool:
        return bool(self.stands or self.files or self.folders)

    def is_emptied_in(self, newer: "FolderNode") -> bool:
        """Whether only the newer one is a folder without anything in it: removing all from this one would remove it."""
        return not (self.stands or newer.files or newer.folders)

    def folder(self, path: str) -> "FolderNode | None":
        """The folder at a path; '' is this one."""
        node = self
        for part in path.split("/") if path else ():
            below = node.folders.get(part)
            if below is None:
                return None
            node = below
        return node

    def leaf(self, path: str) -> FileLeaf | None:
        parent, _, name = path.rpartition("/")
        folder = self.folder(parent)
        return None if folder is None else folder.files.get(name)

    def walk(self, path: str = "") -> "Iterator[tuple[str, FolderNode]]":
        """Every folder with its path, a folder before those in it, in path order; this one is at `path`."""
        waiting = [(path, self)]
        while waiting:
            place, node = waiting.pop()
            yield place, node
            waiting += [(_joined(place, name), node.folders[name]) for name in sorted(node.folders, reverse=True)]


EMPTY: Final = FolderNode({}, {}, stands=True)


class _Draft:
    """A folder that is being filled."""

    __slots__ = ("files", "folders", "stands")

    def __init__(self) -> None:
        self.files: dict[str, FileLeaf] = {}
        self.folders: dict[str, _Draft] = {}
        self.stands = False


def built(entries: Iterable[tuple[str, FileLeaf | None]]) -> FolderNode:
    """A tree of (path, leaf) in any order; without a leaf: a folder of its own."""
    top = _Draft()
    drafts = {"": top}

    def draft_of(path: str) -> _Draft:
        missing = []
        while (found := drafts.get(path)) is None:
            path, _, name = path.rpartition("/")
            missing.append(name)
        for name in reversed(missing):
            path = _joined(path, name)
            found.folders[name] = drafts[path] = _Draft()
            found = drafts[path]
        return found

    for path, leaf in entries:
        if leaf is None:
            draft_of(path).stands = True
        else:
            parent, _, name = path.rpartition("/")
            draft_of(parent).files[name] = leaf
    top.stands = True
    return _finished(top)


def _finished(draft: _Draft) -> FolderNode:
    # As deep as a path has parts, which is 512 at the most.
    return FolderNode(
        draft.files, {name: _finished(below) for name, below in draft.folders.items()}, stands=draft.stands
    )


class Mark(Enum):
    STANDS = "stands"  # a folder is there, with what is in it if there is anything
    LEFT = "left"  # a file is gone; a folder no longer stands by itself, and goes if nothing is in it
    GONE = "gone"  # nothing is there or below


Change = FileLeaf | FolderNode | Mark
"""What a path becomes: a file, a folder with just this in it, or what a mark says."""


def changed(node: FolderNode, changes: Mapping[str, Change]) -> FolderNode:
    """The tree after these changes. Of two changes the one that is further up counts first."""
    own: dict[str, Change] = {}
    below: dict[str, dict[str, Change]] = {}
    for path, change in changes.items():
        name, _, rest = path.partition("/")
        if rest:
            below.setdefault(name, {})[rest] = change
        else:
            own[name] = change
    files, folders = dict(node.files), dict(node.folders)
    for name, change in own.items():
        files.pop(name, None)
        folder = folders.pop(name, None)
        if isinstance(change, FileLeaf):
            files[name] = change
        elif isinstance(change, FolderNode):
            folders[name] = change
        elif change is not Mark.GONE:
            folder = replace(folder or _NOTHING, stands=change is Mark.STANDS)
            if folder.is_there:
                folders[name] = folder
    for name, inner in below.items():
        folder = changed(folders.pop(name, _NOTHING), inner)
        if folder.is_there:
            files.pop(name, None)
            folders[name] = folder
    return FolderNode(files, folders, stands=node.stands, modified_ns=node.modified_ns)


_NOTHING: Final = FolderNode({}, {})


def filtered(node: FolderNode, shows: Callable[[str], bool], hides_all: Callable[[str], bool]) -> FolderNode:
    """What is shown of a tree: a folder is, if it stands and is shown itself, or if something in it is. A folder that
    `hides_all` is not looked into. What is shown as a whole is shared."""
    return _filtered(node, "", shows, hides_all)


def _filtered(
    node: FolderNode, path: str, shows: Callable[[str], bool], hides_all: Callable[[str], bool]
) -> FolderNode:
    files = {name: leaf for name, leaf in node.files.items() if shows(_joined(path, name))}
    folders = {}
    for name, below in node.folders.items():
        place = _joined(path, name)
        if hides_all(place):
            continue
        kept = _filtered(below, place, shows, hides_all)
        if kept.is_there:
            folders[name] = kept
    stands = node.stands and (not path or shows(path))
    is_whole = stands == node.stands and len(files) == len(node.files)
    if is_whole and len(folders) == len(node.folders) and all(node.folders[name] is folders[name] for name in folders):
        return node
    return FolderNode(files, folders, stands=stands, modified_ns=node.modified_ns)


def differences(
    old: FolderNode, new: FolderNode, path: str = ""
) -> Iterator[tuple[TreePath, FileLeaf | FolderNode | None, FileLeaf | FolderNode | None]]:
    """Where two trees differ: files and links one by one; a folder that one side lacks, before (if it is gone, after)
    what is in it; and, after that, one that has nothing in it any more, which nothing else tells of. What the trees
    share is not looked at."""
    if old is new:
        return
    for name in sorted(old.files.keys() | new.files.keys()):
        before, after = old.files.get(name), new.files.get(name)
        if before is not after and not (before is not None and before.looks_like(after)):
            yield TreePath.stored(_joined(path, name)), before, after
    for name in sorted(old.folders.keys() | new.folders.keys()):
        folder_before, folder_after = old.folders.get(name), new.folders.get(name)
        place = TreePath.stored(_joined(path, name))
        if folder_before is None:
            yield place, None, folder_after
        yield from differences(folder_before or _NOTHING, folder_after or _NOTHING, place)
        if folder_after is None or (folder_before is not None and folder_before.is_emptied_in(folder_after)):
            yield place, folder_before, folder_after


def _joined(folder: str, name: str) -> str:
    return f"{folder}/{name}" if folder else name
