"""What a batch of commits writes: the rows of one transaction, as the statement takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final
from uuid import UUID

from contextbase.audit.chain import AuditExtension
from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TreePath
from contextbase.storage.model import Kind, NewCommit

__all__ = ["HeadState", "KeptAnswer", "Landing", "NewReview", "SideVersion"]

_STATE: Final = ("kind", "content_hash", "size", "executable", "mime")
_OF_SIDE: Final = ("side.seq", "side.node_id", "side.path")


@dataclass(frozen=True, kw_only=True, slots=True)
class HeadState:
    seq: Seq
    epoch: UUID
    policy_version: int
    commit_id: UUID | None  # of its last commit: two futures may give one number to different commits


@dataclass(frozen=True, kw_only=True, slots=True)
class SideVersion:
    id: UUID
    seq: Seq
    node_id: NodeId
    path: TreePath
    reason: str
    kind: Kind
    content_hash: ContentHash | None
    size: int
    executable: bool
    mime: str
    base_number: int | None


@dataclass(frozen=True, kw_only=True, slots=True)
class NewReview:
    id: UUID
    side: SideVersion
    author_id: PrincipalId
    reason: str
    base_path: TreePath  # where the writer found the base: another place than the side's, of a rename
    base_seq: Seq
    ours_number: int | None
    conflicts: str  # JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class KeptAnswer:
    """For the request that is sent again."""

    principal_id: PrincipalId
    key: str
    request_hash: bytes
    answer: str  # JSON


@dataclass(frozen=True, kw_only=True, slots=True)
class Landing:
    head: HeadState  # what it lands on
    audit: AuditExtension
    commits: Sequence[NewCommit] = ()
    contents: Mapping[ContentHash, bytes] = field(default_factory=dict)  # small ones, which are stored with it
    bare_nodes: Sequence[tuple[NodeId, Seq]] = ()  # nodes with a side version only
    sides: Sequence[SideVersion] = ()
    reviews: Sequence[NewReview] = ()
    answers: Sequence[KeptAnswer] = ()

    @property
    def last(self) -> Seq:
        """The head's seq when it has landed."""
        return Seq(self.head.seq + len(self.commits))

    def arguments(self) -> list[object]:
        """In the order of the statement."""
        head = self.head
        project_id, *audit = self.audit.arguments()
        return [
            project_id, head.seq, head.epoch, head.policy_version, head.commit_id,
            *audit,
            list(self.contents), list(self.contents.values()),
            self.last,
            *self._commits(),
            *_columns(self.sides, "id", "seq", "node_id", "path", "reason", *_STATE, "base_number"),
            *_columns(self.reviews, "id", *_OF_SIDE, "author_id", "reason", "base_path", "base_seq",
                      "side.base_number", "ours_number", "side.id", "conflicts"),
            *_columns(self.answers, "principal_id", "key", "request_hash", "answer"),
        ]  # fmt: skip

    def _commits(self) -> tuple[list[object], ...]:
        """Commits, nodes, the versions that end and those that come."""
        seqs = [Seq(self.head.seq + offset) for offset in range(1, len(self.commits) + 1)]
        placed = [(seq, version) for seq, commit in zip(seqs, self.commits, strict=True) for version in commit.versions]
        made = [*((version.node_id, seq) for seq, version in placed if version.number == 1), *self.bare_nodes]
        # Within one batch a node may be written again and again: all but its last version are replaced on arrival.
        replaced_by = {(version.node_id, version.number - 1): seq for seq, version in placed}
        here = {(version.node_id, version.number) for _, version in placed}
        ended = {key: seq for key, seq in replaced_by.items() if key[1] > 0 and key not in here}
        versions = [version for _, version in placed]
        return (
            [*seqs],
            *_columns(self.commits, "id", "principal_id", "way_in", "message", "run"),
            [node_id for node_id, _ in made],
            [seq for _, seq in made],
            [node_id for node_id, _ in ended],
            [number for _, number in ended],
            [*ended.values()],
            *_columns(versions, "node_id", "number"),
            [seq for seq, _ in placed],
            [replaced_by.get((version.node_id, version.number)) for version in versions],
            *_columns(versions, "path", *_STATE, "base_number", "merged_number", "sent_hash"),
        )


def _columns(rows: Sequence[object], *names: str) -> list[list[object]]:
    """A list of what all rows have under each name, as `unnest` takes them."""
    return [list(map(attrgetter(name), rows)) for name in names]
