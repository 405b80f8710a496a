"""Cursors, commits and events as the feed gives them, and what of them a reader may see."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from enum import StrEnum
from operator import is_
from typing import Final, Self
from uuid import UUID

from contextbase.audit.model import OperatorType
from contextbase.errors import InvalidInput
from contextbase.identity.levels import PathAuthority
from contextbase.identity.model import PrincipalKind
from contextbase.ids import ContentHash, PrincipalId, ProjectId, Seq, TreePath

__all__ = [
    "Author",
    "ChangeKind",
    "Cursor",
    "FeedChange",
    "FeedCommit",
    "FeedEvent",
    "FeedHeads",
    "FeedItem",
    "FeedPage",
    "NewEvent",
    "Scope",
    "SetAside",
]

MOST_CHANGES_SHOWN: Final = 1000
_CURSOR: Final = re.compile(r"([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})\.([0-9]{1,18})(?:\.([0-9]{1,18}))?")


@dataclass(frozen=True, kw_only=True, slots=True)
class Cursor:
    """A place in a project's feed: everything up to it was read, or passed over."""

    epoch: UUID
    seq: Seq
    event: int

    def __str__(self) -> str:
        return f"{self.epoch}.{self.seq}.{self.event}"

    @classmethod
    def parse(cls, text: str, *, event: int) -> Self:
        """`epoch.seq.event`, or `epoch.seq` as a checkout gives it: then after the given event."""
        match = _CURSOR.fullmatch(text)
        if match is None:
            raise InvalidInput(f"{text[:80]!r} is not a cursor; pass one that the feed gave, or 'start'.")
        return cls(epoch=UUID(match[1]), seq=Seq(int(match[2])), event=int(match[3]) if match[3] else event)


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedHeads:
    """How far a project's feed goes, and under which version of its policy."""

    project_id: ProjectId
    epoch: UUID
    seq: Seq
    event: int
    policy_version: int

    @property
    def cursor(self) -> Cursor:
        return Cursor(epoch=self.epoch, seq=self.seq, event=self.event)


@dataclass(frozen=True, kw_only=True, slots=True)
class Author:
    id: PrincipalId
    kind: PrincipalKind
    name: str


class ChangeKind(StrEnum):
    CREATED = "created"
    CHANGED = "changed"
    RENAMED = "renamed"
    DELETED = "deleted"


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedChange:
    """What a commit did to one entry. Without content when it is gone."""

    action: ChangeKind
    path: TreePath
    previous_path: TreePath | None = None  # of a rename
    kind: str = ""  # file, symlink, directory
    content_hash: ContentHash | None = None
    size: int = 0
    executable: bool = False
    path_now: TreePath  # where the node is at the head

    @property
    def places(self) -> tuple[TreePath, ...]:
        before = () if self.previous_path is None else (self.previous_path,)
        return self.path, *before, self.path_now

    def seen(self, scope: "Scope") -> "FeedChange | None":
        """The change as it looks from a scope: a rename across its border is a creation or a deletion."""
        before = self.previous_path is not None and scope.includes(self.previous_path)
        # An old version is shown to who may see the path then and the path now.
        if scope.includes(self.path) and scope.authority.sees(self.path_now):
            if self.previous_path is None or before:
                return self
            return replace(self, action=ChangeKind.CREATED, previous_path=None)
        if before and self.previous_path is not None:
            return FeedChange(action=ChangeKind.DELETED, path=self.previous_path, path_now=self.previous_path)
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetAside:
    """A change that is not in the tree: it lost against the head, or waits for a review."""

    reason: str  # superseded, in_review
    path: TreePath
    side_version_id: UUID
    review_id: UUID | None
    path_now: TreePath  # where the node is at the head

    def is_seen(self, scope: "Scope") -> bool:
        return scope.includes(self.path) and scope.authority.sees(self.path_now)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)  # one commit is one object, shared by all who see all of it
class FeedCommit:
    seq: Seq
    author: Author
    operator_type: OperatorType
    message: str
    at: datetime
    changes: tuple[FeedChange, ...]
    set_aside: tuple[SetAside, ...] = ()
    left_off: int = 0  # of both, what is not listed when there is very much

    @property
    def position(self) -> int:
        return self.seq

    def seen(self, scope: "Scope") -> "FeedCommit | None":
        """What a scope shows of it, or None."""
        visible = [change.seen(scope) for change in self.changes]
        kept = tuple(change for change in visible if change is not None)
        aside = tuple(one for one in self.set_aside if one.is_seen(scope))
        if not kept and not aside:
            return None
        whole = len(aside) == len(self.set_aside) and all(map(is_, visible, self.changes))
        if whole and max(len(kept), len(aside)) <= MOST_CHANGES_SHOWN:
            return self
        shown, shown_aside = kept[:MOST_CHANGES_SHOWN], aside[:MOST_CHANGES_SHOWN]
        return replace(
            self,
            message=self.message if whole or scope.authority.may_read_message(self._places()) else "",
            changes=shown,
            set_aside=shown_aside,
            left_off=len(kept) - len(shown) + len(aside) - len(shown_aside),
        )

    def _places(self) -> Iterator[TreePath]:
        for change in self.changes:
            yield from change.places
        for aside in self.set_aside:
            yield from (aside.path, aside.path_now)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)
class FeedEvent:
    """What is not a commit: a lease, a notice."""

    number: int
    kind: str
    author: Author | None
    path: TreePath | None  # who may see the path may see the event; None: everyone
    payload: Mapping[str, object]
    at: datetime

    @property
    def position(self) -> int:
        return self.number

    def seen(self, scope: "Scope") -> "FeedEvent | None":
        return self if self.path is None or scope.includes(self.path) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewEvent:
    kind: str
    principal_id: PrincipalId | None = None
    path: TreePath | None = None
    payload: Mapping[str, object]


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedItem:
    cursor: Cursor  # after it
    body: FeedCommit | FeedEvent


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)  # one object for all who are shown the same
class FeedPage:
    items: tuple[FeedItem, ...]
    cursor: Cursor  # where to go on; past what was passed over, too
    more: bool  # whether there is more already


@dataclass(frozen=True, kw_only=True, slots=True)
class Scope:
    """What a reader follows: what it may see, of that what lies at or below a path."""

    authority: PathAuthority
    below: TreePath | None = None

    def includes(self, path: TreePath) -> bool:
        if self.below is not None and path != self.below and not path.is_below(self.below):
            return False
        return self.authority.sees(path)
