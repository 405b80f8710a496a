"""Review items, what a reviewer is shown of one, and what a reviewer may decide."""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from uuid import UUID

from contextbase.gate.model import Content, ReviewState
from contextbase.identity.model import Principal
from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TreePath
from contextbase.merge import MergeConflict
from contextbase.storage.model import Kind

__all__ = [
    "CRITICAL",
    "Choice",
    "Claim",
    "Closed",
    "Comment",
    "ConflictPick",
    "ItemFilter",
    "ItemPage",
    "ReviewDecision",
    "ReviewItem",
    "Shown",
    "ShownSide",
    "Suggestion",
]

CRITICAL = "critical"
"""The reason of an item that is here by policy, whether or not anything is contested."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Claim:
    """Advice: somebody is on it. Whoever thinks it was forgotten takes it over."""

    by: Principal
    at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class Closed:
    by: Principal
    at: datetime
    seq: Seq | None  # the commit that settled it; None: there was nothing to change


@dataclass(frozen=True, kw_only=True, slots=True)
class Suggestion:
    """What a resolver answered when it was asked about an item's contested stretches."""

    by: str
    at: datetime
    about: str  # names the stretches it was asked about: it holds as long as they are the same
    texts: tuple[bytes, ...] | None  # one for each stretch; None: the answer was of no use
    problem: str = ""  # why it was of no use


@dataclass(frozen=True, kw_only=True, slots=True)
class Comment:
    number: int
    author: Principal
    text: str
    at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewItem:
    """A change that waits for a person. Theirs: its writer's side. Ours: the head. Base: what that was made from."""

    id: UUID
    seq: Seq  # the commit that brought it
    node_id: NodeId  # what stood at its place, if anything did
    path: TreePath  # where the writer wants it to stand
    base_path: TreePath  # where the writer found the base; another place than `path`, if it is a rename
    base_seq: Seq
    author: Principal
    state: ReviewState
    reason: str  # critical, content, deleted-and-changed, ...
    base_number: int | None
    ours_number: int | None
    side_id: UUID
    kind: Kind  # of theirs
    content_hash: ContentHash | None
    size: int
    executable: bool
    mime: str
    conflicts: tuple[MergeConflict, ...]  # as of `checked_seq`
    checked_seq: Seq
    created_at: datetime
    comments: int
    claim: Claim | None
    closed: Closed | None
    suggestion: Suggestion | None
    nodes: tuple[NodeId, ...]  # that it is about
    nodes_now: tuple[TreePath, ...]  # where they are, or were last

    @property
    def is_rename(self) -> bool:
        return self.base_path != self.path

    @property
    def places(self) -> tuple[TreePath, ...]:
        """Who may not see all of these may not know of the item."""
        return self.path, self.base_path, *self.nodes_now


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemFilter:
    """Which items are wanted; None: any."""

    state: ReviewState | None = ReviewState.OPEN
    path: TreePath | None = None  # and what is below it
    authors: tuple[PrincipalId, ...] | None = None
    claimed_by: tuple[PrincipalId, ...] | None = None
    before: UUID | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ItemPage:
    items: tuple[ReviewItem, ...]  # newest first
    next_before: UUID | None


@dataclass(frozen=True, kw_only=True, slots=True)
class ShownSide:
    """One of the three sides as it is stored."""

    path: TreePath
    kind: Kind
    number: int | None  # of the node's version; None: a side version
    content_hash: ContentHash | None
    size: int
    content: bytes | None  # if it is not too long, and was not purged


@dataclass(frozen=True, kw_only=True, slots=True)
class Shown:
    item: ReviewItem
    message: str  # of the commit that brought it; empty for who may not see all of that
    epoch: UUID
    ours_seq: Seq  # the head that ours, the conflicts and the draft are of: to be sent back with a decision
    base: ShownSide | None
    ours: ShownSide | None
    theirs: ShownSide | None  # None: the writer deleted it
    draft: bytes | None  # the merge, with markers where it is contested; None: there is no text to draw
    conflicts: tuple[MergeConflict, ...]
    by_conflict: bool  # whether they can be chosen one by one
    suggested: bytes | None  # the file with what a resolver suggested
    comments: tuple[Comment, ...]


class Choice(StrEnum):
    OURS = "ours"  # the head stays as it is
    THEIRS = "theirs"  # the writer's text where it is contested, everybody's changes elsewhere
    EDITED = "edited"  # what the reviewer made of it
    PICKED = "picked"  # conflict by conflict
    SUGGESTED = "suggested"  # what a resolver suggested


@dataclass(frozen=True, kw_only=True, slots=True)
class ConflictPick:
    """The choice at one conflict: a side, or a text in its place."""

    conflict: int  # counted from 1
    side: Choice | None = None  # ours or theirs
    text: bytes | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewDecision:
    choice: Choice
    epoch: UUID | None = None  # of `ours_seq`; None: the project's, whichever that is
    ours_seq: Seq | None = None  # the head the reviewer was shown; None: the one the item was made at
    picks: tuple[ConflictPick, ...] = ()  # one for each conflict
    content: Content | None = None  # of EDITED
    message: str = ""
