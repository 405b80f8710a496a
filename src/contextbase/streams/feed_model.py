"""Cursors, commits and items of a project's feed, and what of them a reader may see."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from operator import is_
from typing import Final, Self
from uuid import UUID

from contextbase.audit.model import WayIn
from contextbase.errors import InvalidInput
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, ProjectId, Seq, TreePath
from contextbase.streams.model import EventAuthor, StreamEvent
from contextbase.vocabulary import FileChangeKind

__all__ = [
    "Cursor",
    "FeedChange",
    "FeedCommit",
    "FeedHeads",
    "FeedItem",
    "FeedPage",
    "FileChangeKind",
    "SetAside",
    "Viewpoint",
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
class FeedChange:
    """What a commit did to one entry. Without content when it is gone."""

    action: FileChangeKind
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

    def seen(self, viewpoint: "Viewpoint") -> "FeedChange | None":
        """The change as it looks from there: a rename across its border is a creation or a deletion."""
        before = self.previous_path is not None and viewpoint.includes(self.previous_path)
        if viewpoint.includes_version(self.path, self.path_now):
            if self.previous_path is None or before:
                return self
            return replace(self, action=FileChangeKind.CREATED, previous_path=None)
        if before and self.previous_path is not None:
            return FeedChange(action=FileChangeKind.DELETED, path=self.previous_path, path_now=self.previous_path)
        return None


@dataclass(frozen=True, kw_only=True, slots=True)
class SetAside:
    """A change that is not in the tree: it lost against the head, or waits for a review."""

    reason: str  # superseded, in_review
    path: TreePath
    side_version_id: UUID
    review_id: UUID | None
    path_now: TreePath  # where the node is at the head

    def is_seen(self, viewpoint: "Viewpoint") -> bool:
        return viewpoint.includes_version(self.path, self.path_now)


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)  # one commit is one object, shared by all who see all of it
class FeedCommit:
    seq: Seq
    author: EventAuthor
    way_in: WayIn
    message: str
    at: datetime
    changes: tuple[FeedChange, ...]
    set_aside: tuple[SetAside, ...] = ()
    left_off: int = 0  # of both, what is not listed when there is very much

    @property
    def position(self) -> int:
        return self.seq

    def seen(self, viewpoint: "Viewpoint") -> "FeedCommit | None":
        """What can be seen of it from there, or None."""
        visible = [change.seen(viewpoint) for change in self.changes]
        kept = tuple(change for change in visible if change is not None)
        aside = tuple(one for one in self.set_aside if one.is_seen(viewpoint))
        if not kept and not aside:
            return None
        whole = len(aside) == len(self.set_aside) and all(map(is_, visible, self.changes))
        if whole and max(len(kept), len(aside)) <= MOST_CHANGES_SHOWN:
            return self
        shown, shown_aside = kept[:MOST_CHANGES_SHOWN], aside[:MOST_CHANGES_SHOWN]
        return replace(
            self,
            message=self.message if whole or viewpoint.authority.may_read_message(self._places()) else "",
            changes=shown,
            set_aside=shown_aside,
            left_off=len(kept) - len(shown) + len(aside) - len(shown_aside),
        )

    def _places(self) -> Iterator[TreePath]:
        for change in self.changes:
            yield from change.places
        for aside in self.set_aside:
            yield from (aside.path, aside.path_now)


@dataclass(frozen=True, kw_only=True, slots=True)
class FeedItem:
    cursor: Cursor  # after it
    body: FeedCommit | StreamEvent


@dataclass(frozen=True, kw_only=True, slots=True, eq=False)  # one object for all who are shown the same
class FeedPage:
    items: tuple[FeedItem, ...]
    cursor: Cursor  # where to go on; past what was passed over, too
    more: bool  # whether there is more already


@dataclass(frozen=True, kw_only=True, slots=True)
class Viewpoint:
    """What a reader follows: what it may see, of that what lies at or below a path."""

    authority: PathAuthority
    below: TreePath | None = None

    def includes(self, path: TreePath) -> bool:
        return self._reaches(path) and self.authority.sees(path)

    def includes_version(self, path_then: TreePath, path_now: TreePath) -> bool:
        """Only the place then has to lie at or below the followed path."""
        return self._reaches(path_then) and self.authority.shows(path_then, path_now)

    def shows(self, event: StreamEvent) -> bool:
        return event.path is None or self.includes(event.path)

    def _reaches(self, path: TreePath) -> bool:
        return self.below is None or path == self.below or path.is_below(self.below)
