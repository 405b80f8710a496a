"""What becomes of others' changes in an agent's folder, path by path. Pure.

| the agent          | others                        | then                                                     |
|--------------------|-------------------------------|----------------------------------------------------------|
| left it alone      | changed, added or deleted it  | it arrives                                               |
| has the same       | have the same                 | nothing is to be done, and the path goes on from theirs  |
| changed the file   | changed the file              | merged where that is clean, else the agent's file stays  |
| changed it         | deleted it                    | the agent's file stays                                   |
| deleted it         | changed it                    | it stays deleted                                         |
| renamed it         | changed or deleted it         | the agent's file stays; the commit of the rename merges  |
| renamed its folder | added a file to that folder   | it waits; the commit of the rename takes it along        |

What stays keeps the base it had, so that the next commit is merged with what others did.
"""

import os
import unicodedata
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from contextbase.ids import Seq, TreePath
from contextbase.merge import Strategy
from contextbase.storage.model import Kind
from contextbase.workspaces.commit_plan import PendingChange, moved_folders
from contextbase.workspaces.model import FolderContent, WorkspaceChanges

__all__ = ["KeptReason", "OthersChange", "PathPlan", "RefreshAction", "emptied_folders", "in_order", "plan"]

LARGEST_MERGED: Final = 16 << 20  # bytes of one side; all three are in memory
_MERGED_BY_ITSELF: Final = frozenset({Strategy.AUTO, Strategy.CRDT, Strategy.UNION})
"""With the other strategies a whole file wins or a person decides, and that is for the gate to see."""


class KeptReason(StrEnum):
    """Why the agent's folder does not have what others made of a path."""

    CONFLICT = "conflict"  # both changed it, and there is no clean merge
    DELETED_BY_OTHERS = "deleted_by_others"  # and the agent changed it
    DELETED_BY_YOU = "deleted_by_you"  # and others changed it
    RENAMED_BY_YOU = "renamed_by_you"  # it, or its folder
    POLICY = "policy"  # its merge strategy leaves the decision to the gate
    TOO_LARGE = "too_large"  # to be merged
    REPORTED = "reported"  # what the agent has there cannot be committed as it is
    IN_USE = "in_use"  # a program has it open for writing
    IN_THE_WAY = "in_the_way"  # something else stands there, or the agent has gone on meanwhile
    NO_ROOM = "no_room"

    @property
    def sentence(self) -> str:
        return _SENTENCES[self]


_SENTENCES: Final = {
    KeptReason.CONFLICT: "You and others changed it, and there is no clean merge.",
    KeptReason.DELETED_BY_OTHERS: "Others deleted or renamed it, and you changed it.",
    KeptReason.DELETED_BY_YOU: "You deleted it, and others changed it.",
    KeptReason.RENAMED_BY_YOU: "You renamed it or its folder; your next commit brings both together.",
    KeptReason.POLICY: "You and others changed it, and its merge strategy leaves that to the commit.",
    KeptReason.TOO_LARGE: "You and others changed it, and it is too large to be merged here.",
    KeptReason.REPORTED: "What you have there cannot be committed as it is; see the status.",
    KeptReason.IN_USE: "A program has it open for writing.",
    KeptReason.IN_THE_WAY: "Something else stands there, or it changed just now.",
    KeptReason.NO_ROOM: "There is no room for it.",
}


class RefreshAction(StrEnum):
    AGREE = "agree"  # the folder has it already
    PLACE = "place"
    MERGE = "merge"
    KEEP = "keep"


@dataclass(frozen=True, kw_only=True, slots=True)
class OthersChange:
    """A path at which the newest snapshot differs from the one that the folder's copy is based on."""

    path: TreePath
    base: Seq  # the snapshot that the folder's copy is based on
    given: FolderContent | None  # what the project had there in that snapshot
    shown: FolderContent | None  # what the folder had when it was given or committed last
    head: FolderContent | None  # what the project has there now
    origin: TreePath | None = None  # where the view has the file, if not at the path


@dataclass(frozen=True, kw_only=True, slots=True)
class PathPlan:
    change: OthersChange
    action: RefreshAction
    mine: FolderContent | None  # what the folder has there now
    reason: KeptReason | None = None


def plan(
    changes: Iterable[OthersChange],
    pending: Collection[PendingChange],
    found: WorkspaceChanges,
    strategy_for: Callable[[TreePath], Strategy],
) -> list[PathPlan]:
    """`pending`: what the agent has not committed, those included that are held back; `found`: the look at the folder
    that says so."""
    changed = {change.path: change for change in pending}
    renames = [change for change in changed.values() if change.renamed_from is not None]
    renamed = {place for change in renames for place in (change.path, change.renamed_from)}
    moved = {folder.path for folder in moved_folders(found, pending)}  # those of earlier commits are others' by now
    unread = {unicodedata.normalize("NFC", os.fsdecode(reported.name)) for reported in found.reported}

    def planned(change: OthersChange) -> PathPlan:
        path, own = change.path, changed.get(change.path)
        mine = change.shown if own is None else own.content
        action, reason = RefreshAction.KEEP, None
        if path in unread or not unread.isdisjoint(path.folders) or "" in unread:
            reason = KeptReason.REPORTED
        elif path in renamed or (change.shown is None and own is None and not moved.isdisjoint(path.folders)):
            reason = KeptReason.RENAMED_BY_YOU
        elif mine == change.head:
            action = RefreshAction.AGREE
        elif own is None:
            action = RefreshAction.PLACE
        else:
            reason = _contested(change, mine, strategy_for(path))
            action = RefreshAction.MERGE if reason is None else RefreshAction.KEEP
        return PathPlan(change=change, action=action, mine=mine, reason=reason)

    return [planned(change) for change in changes]


def _contested(change: OthersChange, mine: FolderContent | None, strategy: Strategy) -> KeptReason | None:
    """Why what both changed is not to be merged; None: it may be."""
    if mine is None:
        return KeptReason.DELETED_BY_YOU
    if change.head is None:
        return KeptReason.DELETED_BY_OTHERS
    sides = [side for side in (change.given, mine, change.head) if side is not None]
    if any(side.kind is not Kind.FILE for side in sides):
        return KeptReason.CONFLICT
    if strategy not in _MERGED_BY_ITSELF:
        return KeptReason.POLICY
    return KeptReason.TOO_LARGE if max(side.size for side in sides) > LARGEST_MERGED else None


def in_order(plans: Collection[PathPlan]) -> list[PathPlan]:
    """So that each can be carried out when its turn comes: what goes before what comes, and from below."""
    gone = [one for one in plans if one.change.head is None]
    rest = [one for one in plans if one.change.head is not None]
    return [
        *sorted(gone, key=lambda one: one.change.path, reverse=True),
        *sorted(rest, key=lambda one: one.change.path),
    ]


def emptied_folders(plans: Collection[PathPlan]) -> set[TreePath]:
    """The folders of what goes, apart from those that something arrives in."""
    kept = {folder for one in plans if one.change.head is not None for folder in one.change.path.folders}
    return {folder for one in plans if one.change.head is None for folder in one.change.path.folders} - kept
