"""What writers ask of the gate, and what it answers."""

from collections import Counter
from dataclasses import dataclass
from enum import StrEnum
from typing import Final
from uuid import UUID

from contextbase.errors import InvalidInput
from contextbase.ids import ContentHash, NodeId, ProjectId, Seq, TreePath
from contextbase.merge import MergeConflict
from contextbase.vocabulary import ChangeStatus, ContentKind, ReviewState

__all__ = [
    "AUTO_MERGE",
    "MANUAL",
    "RESOLVER",
    "ChangeAction",
    "ChangeAnswer",
    "ChangeStatus",
    "CommitAnswer",
    "CommitRequest",
    "Content",
    "ContentKind",
    "Expectation",
    "RequestedChange",
    "ReviewState",
    "check_message_id",
    "check_words",
]

MOST_CHANGES: Final = 10_000
LONGEST_MESSAGE: Final = 10_000
LONGEST_KEY: Final = 200

# How a review was decided, in the audit trail.
MANUAL: Final = "manual"  # by somebody who looked at it
AUTO_MERGE: Final = "auto_merge"  # the conflict went away
RESOLVER: Final = "resolver"  # as the resolver suggested


class ChangeAction(StrEnum):
    WRITE = "write"  # make or replace a file or link
    DELETE = "delete"
    RENAME = "rename"  # move to `target`, with new content if any is given
    MAKE_DIRECTORY = "mkdir"


@dataclass(frozen=True, kw_only=True, slots=True)
class Content:
    """What a writer brings: the bytes themselves, or the name of a blob that is stored already."""

    hash: ContentHash
    size: int
    inline: bytes | None = None  # None: it is stored
    start: bytes | None = None  # the first bytes of one that is stored; None: they are not known


@dataclass(frozen=True, kw_only=True, slots=True)
class RequestedChange:
    action: ChangeAction
    path: TreePath
    base: Seq  # the snapshot the writer saw: what stood at the path there is the base of the merge
    content: Content | None = None
    kind: ContentKind = ContentKind.FILE
    executable: bool | None = None  # None: as it was
    mime: str = ""
    target: TreePath | None = None  # of a rename
    # The version that the writer saw at the path, by its number (0: none); then `base` is found from it.
    base_version: int | None = None

    def __post_init__(self) -> None:
        if (self.action is ChangeAction.WRITE) and self.content is None:
            raise InvalidInput(f"The write of {self.path} has no content.")
        if (self.action is ChangeAction.RENAME) != (self.target is not None):
            raise InvalidInput(f"Only a rename has a target, and it needs one; see the change of {self.path}.")
        if self.action in (ChangeAction.DELETE, ChangeAction.MAKE_DIRECTORY) and self.content is not None:
            raise InvalidInput(f"A {self.action} has no content; see the change of {self.path}.")


@dataclass(frozen=True, kw_only=True, slots=True)
class Expectation:
    """What must stand at the path of a commit's only change. A path can have one of several contents, any, or none."""

    contents: frozenset[ContentHash] = frozenset()
    is_any: bool = False  # whatever it is
    is_none: bool = False  # nothing may stand there

    def is_met_by(self, found: ContentHash | None, *, exists: bool) -> bool:
        if self.is_none:
            return not exists
        return exists and (self.is_any or found in self.contents)


def check_words(message: str, run: str | None) -> None:
    """Raise `InvalidInput` for a message, or a name of a run, that no commit can have."""
    if len(message.encode()) > LONGEST_MESSAGE or "\x00" in message:
        raise InvalidInput(f"A message can have at most {LONGEST_MESSAGE} bytes, and no NUL.")
    if run is not None and not (1 <= len(run.encode()) <= LONGEST_KEY and run.isprintable()):
        raise InvalidInput(f"The name of a run has 1 to {LONGEST_KEY} printable bytes.")


def check_message_id(message_id: str | None) -> None:
    if message_id is not None and not (1 <= len(message_id.encode()) <= LONGEST_KEY and message_id.isprintable()):
        raise InvalidInput(f"The id of a message has 1 to {LONGEST_KEY} printable bytes.")


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitRequest:
    project_id: ProjectId
    changes: tuple[RequestedChange, ...]
    message: str = ""
    epoch: UUID | None = None  # of the bases; None: the project's, whichever that is
    key: str | None = None  # idempotency: the same key and request has the effect of one
    atomic: bool = False  # all changes, or none
    run: str | None = None  # the execution it belongs to, as the writer names it
    lease: int | None = None  # the token of a lease that the writer must still hold
    expects: Expectation | None = None  # else its only change is refused
    message_id: str | None = None  # of the conversation's message that asked for it; kept in the audit row

    def __post_init__(self) -> None:
        if not 1 <= len(self.changes) <= MOST_CHANGES:
            raise InvalidInput(f"A commit has 1 to {MOST_CHANGES} changes, not {len(self.changes)}.")
        check_words(self.message, self.run)
        check_message_id(self.message_id)
        if self.key is not None and not (1 <= len(self.key.encode()) <= LONGEST_KEY and self.key.isprintable()):
            raise InvalidInput(f"An idempotency key has 1 to {LONGEST_KEY} printable bytes.")
        if self.expects is not None and len(self.changes) != 1:
            raise InvalidInput("A commit with If-Match or If-None-Match has one change.")
        places = [place for change in self.changes for place in (change.path, change.target) if place is not None]
        if len(set(places)) != len(places):
            [(twice, _)] = Counter(places).most_common(1)
            raise InvalidInput(f"Two changes of one commit are for {twice}; make them one.")

    @property
    def tells_what_is_there(self) -> bool:
        """Whether its answer tells a writer what stands, or stood, at a path."""
        return self.expects is not None or any(change.base_version is not None for change in self.changes)


@dataclass(frozen=True, kw_only=True, slots=True)
class ChangeAnswer:
    path: TreePath  # as asked
    status: ChangeStatus
    result_path: TreePath | None = None  # where it stands now, if anywhere
    node_id: NodeId | None = None
    number: int | None = None  # the version that holds the result
    strategy: str | None = None
    notes: tuple[str, ...] = ()
    side_version_id: UUID | None = None
    review_id: UUID | None = None
    conflicts: tuple[MergeConflict, ...] = ()
    code: str | None = None  # of a refusal
    reason: str | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class CommitAnswer:
    seq: Seq  # of this request's own commit; when nothing was to be done, the head's
    committed: bool  # False: no change needed a commit
    changes: tuple[ChangeAnswer, ...]
