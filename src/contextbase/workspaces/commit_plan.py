"""What of a folder's changes is to be committed now, and on which base. Pure.

A workspace is measured against the one view it was made from. What a checkpoint has committed is *held*: the state the
folder had then, and the snapshot from which that path goes on. Only what differs from that is new.
"""

import os
import unicodedata
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from contextbase.gate.model import ChangeAction, ContentKind, RequestedChange
from contextbase.gate.model import Content as SentContent
from contextbase.gate.trusted import MovedFolder
from contextbase.ids import Seq, TreePath
from contextbase.storage.model import Kind
from contextbase.workspaces.credentials import reason_to_hold_back
from contextbase.workspaces.model import FolderContent, Reported, ScanProblem, WorkspaceChanges

__all__ = [
    "NOTHING",
    "CommittedPath",
    "PendingChange",
    "Standing",
    "in_order",
    "moved_folders",
    "outgoing",
    "screened",
    "to_change",
]

NOTHING: Final = Seq(0)
"""The snapshot before the first: the base of what was made with nothing in its place."""


@dataclass(frozen=True, kw_only=True, slots=True)
class CommittedPath:
    """A path that was committed, and went on."""

    base: Seq  # the snapshot that later edits of it are made from
    content: FolderContent | None  # what the folder held then; None: nothing
    origin: TreePath | None = None  # where the view has the file that was renamed to here

    @property
    def is_folder(self) -> bool:
        return self.content is not None and self.content.kind is Kind.DIRECTORY


Standing = Mapping[TreePath, FolderContent]
"""The nodes of the view, as far as they were asked for: nothing of what it hides."""


@dataclass(frozen=True, kw_only=True, slots=True)
class PendingChange:
    """A change to be sent."""

    path: TreePath
    base: Seq
    before: FolderContent | None  # what the agent was given there (a rename: at its source), or committed last
    content: FolderContent | None  # None: it is gone
    renamed_from: TreePath | None = None  # where the project has it
    origin: TreePath | None = None  # where the view has it, if not at the path
    layer_file: str | None = None  # a mirror layer's file that holds the content; None: it is in the work folder

    @property
    def is_only_moved(self) -> bool:
        """Whether a rename changes nothing else, so that no content is sent. (A checkpoint that was written down
        before origins were is sent as it was.)"""
        return self.renamed_from is not None and self.origin is not None and self.content == self.before


def outgoing(
    found: WorkspaceChanges, held: Mapping[TreePath, CommittedPath], standing: Standing
) -> list[PendingChange]:
    """`standing`: the nodes at every path that was changed, renamed or is held."""
    settling = _Settling(found, held, standing)
    renames = _renames(found, held, standing)
    for rename in renames:
        settling.add_rename(rename)
    named = {place for rename in renames for place in (rename.source, rename.target)}
    for change in found.changes:
        if change.path not in named:
            settling.add(change.path, change.content, layer_file=change.layer_file)
        if change.renamed_from is not None and change.renamed_from not in named:
            settling.add(change.renamed_from, None)
    named |= {place for change in found.changes for place in (change.path, change.renamed_from) if place is not None}
    unknown = {unicodedata.normalize("NFC", os.fsdecode(reported.name)) for reported in found.reported}
    for path in held.keys() - named:
        if _is_among(path, unknown):
            continue
        if path not in found.filled:
            settling.add(path, standing.get(path))  # as in the view again
        elif not held[path].is_folder:
            settling.add(path, None)  # a folder with something in it has taken the file's place
    return settling.result


def moved_folders(found: WorkspaceChanges, changes: Iterable[PendingChange]) -> list[MovedFolder]:
    """The folders whose files are sent as renames now: from where the project has them."""
    targets = {move.source: move.target for move in found.moved}
    moved: dict[tuple[TreePath, TreePath], Seq] = {}
    for change in changes:
        if change.origin is None or change.renamed_from is None:
            continue
        for folder in change.origin.folders:
            rest = change.origin[len(folder) :]
            target = targets.get(folder)
            if target is not None and change.path == target + rest and change.renamed_from.endswith(rest):
                key = (TreePath.stored(change.renamed_from.removesuffix(rest)), target)
                moved[key] = min(change.base, moved.get(key, change.base))
    return [MovedFolder(path=source, target=target, base=base) for (source, target), base in sorted(moved.items())]


class _Settling:
    def __init__(self, found: WorkspaceChanges, held: Mapping[TreePath, CommittedPath], standing: Standing) -> None:
        self._view = found.view
        self._held = held
        self._standing = standing
        self.result: list[PendingChange] = []

    def add(self, path: TreePath, content: FolderContent | None, *, layer_file: str | None = None) -> None:
        held = self._held.get(path)
        before = held.content if held else self._standing.get(path)
        if before == content:
            return  # committed already, or a folder that was no node
        # What is hidden was not seen: whatever the agent has in its place was made from nothing.
        given = NOTHING if self._view.hides(path) else self._view.snapshot.seq
        self.result.append(
            PendingChange(
                path=path,
                base=held.base if held else given,
                before=before,
                content=content,
                origin=held.origin if held and content is not None else None,
                layer_file=layer_file,
            )
        )

    def add_rename(self, rename: "_Rename") -> None:
        held = self._held.get(rename.source)
        self.result.append(
            PendingChange(
                path=rename.target,
                base=held.base if held else self._view.snapshot.seq,
                before=held.content if held else self._standing.get(rename.source),
                content=rename.content,
                renamed_from=rename.source,
                origin=rename.origin,
                layer_file=rename.layer_file,
            )
        )


@dataclass(frozen=True, kw_only=True, slots=True)
class _Rename:
    source: TreePath  # where the project has it
    target: TreePath
    origin: TreePath  # where the view has it
    content: FolderContent
    layer_file: str | None = None


def _renames(found: WorkspaceChanges, held: Mapping[TreePath, CommittedPath], standing: Standing) -> list[_Rename]:
    """The renames since the last checkpoint. A change says where the view has a file; the project may have it elsewhere
    since an earlier checkpoint. The gate takes one change of a path, so a rename stays one only if nothing else stands
    at its source now, and nothing at its target in the project."""
    now: dict[TreePath, FolderContent | None] = {
        change.renamed_from: None for change in found.changes if change.renamed_from is not None
    }
    now |= {change.path: change.content for change in found.changes}
    committed_at = {
        one.origin: path for path, one in held.items() if one.origin is not None and one.content is not None
    }
    renames = []
    for change in found.changes:
        origin = change.renamed_from
        if origin is None or change.content is None:
            continue
        source = committed_at.get(origin, origin)
        renames.append(
            _Rename(
                source=source, target=change.path, origin=origin, content=change.content, layer_file=change.layer_file
            )
        )
    moved = {rename.origin for rename in renames}
    for origin, source in committed_at.items():  # back where it came from, as it was given or committed
        content = now.get(origin, standing.get(origin))
        if origin not in moved and content is not None and content in (standing.get(origin), held[source].content):
            renames.append(_Rename(source=source, target=origin, origin=origin, content=content))

    def content_of(path: TreePath) -> FolderContent | None:
        return now[path] if path in now else standing.get(path)

    def in_project(path: TreePath) -> FolderContent | None:
        return held[path].content if path in held else standing.get(path)

    return [
        rename
        for rename in renames
        if content_of(rename.source) is None
        and in_project(rename.source) is not None
        and in_project(rename.target) is None
    ]


def _is_among(path: TreePath, places: Collection[str]) -> bool:
    """Whether the path, or a folder it is in, is one of them; '' is the folder that all are in."""
    parts = path.split("/")
    return bool(places) and any("/".join(parts[:depth]) in places for depth in range(len(parts) + 1))


def screened(
    found: WorkspaceChanges, changes: Iterable[PendingChange], is_allowed: Callable[[TreePath], bool]
) -> tuple[list[PendingChange], list[Reported]]:
    """The changes without files that look like credentials, and those. `is_allowed`: whether a path may be
    shared all the same."""
    kept: list[PendingChange] = []
    held_back: list[Reported] = []
    for change in changes:
        credential = found.suspects.get(change.path)
        is_known = (
            change.before is not None and change.content is not None and change.before.hash == change.content.hash
        )
        if credential is None or is_known or is_allowed(change.path):
            kept.append(change)
            continue
        reason = reason_to_hold_back(change.path, credential)
        held_back.append(Reported(name=os.fsencode(change.path), problem=ScanProblem.SECRET, reason=reason))
    return kept, held_back


def in_order(changes: Iterable[PendingChange]) -> list[PendingChange]:
    """So that each can be settled when its turn comes: what goes before what comes, and from below."""
    gone = [change for change in changes if change.content is None]
    rest = [change for change in changes if change.content is not None]
    return [*sorted(gone, key=lambda change: change.path, reverse=True), *sorted(rest, key=lambda change: change.path)]


def to_change(change: PendingChange) -> RequestedChange:
    content = change.content
    if content is None:
        return RequestedChange(action=ChangeAction.DELETE, path=change.path, base=change.base)
    if content.hash is None:
        return RequestedChange(action=ChangeAction.MAKE_DIRECTORY, path=change.path, base=change.base)
    if change.renamed_from is not None and change.is_only_moved:
        return RequestedChange(
            action=ChangeAction.RENAME, path=change.renamed_from, target=change.path, base=change.base
        )
    sent = SentContent(hash=content.hash, size=content.size)
    is_link = content.kind is Kind.SYMLINK
    return RequestedChange(
        action=ChangeAction.WRITE if change.renamed_from is None else ChangeAction.RENAME,
        path=change.path if change.renamed_from is None else change.renamed_from,
        target=None if change.renamed_from is None else change.path,
        base=change.base,
        content=sent,
        kind=ContentKind.SYMLINK if is_link else ContentKind.FILE,
        executable=None if is_link else content.executable,
    )
