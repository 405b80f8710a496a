"""What a batch of commits writes: the rows of one transaction, as the statement takes them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from uuid import UUID

from contextbase.audit.chain import AuditExtension
from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq, TreePath
from contextbase.storage.model import Kind, NewCommit

__all__ = ["HeadState", "KeptAnswer", "Landing", "NewReview", "SideVersion"]


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
    head: HeadState  # what it lands upon
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
            *_sides(self.sides),
            *_reviews(self.reviews),
            [kept.principal_id for kept in self.answers],
            [kept.key for kept in self.answers],
            [kept.request_hash for kept in self.answers],
            [kept.answer for kept in self.answers],
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
            [commit.id for commit in self.commits],
            [commit.principal_id for commit in self.commits],
            [commit.way_in for commit in self.commits],
            [commit.message for commit in self.commits],
            [commit.run for commit in self.commits],
            [node_id for node_id, _ in made],
            [seq for _, seq in made],
            [node_id for node_id, _ in ended],
            [number for _, number in ended],
            [*ended.values()],
            [version.node_id for version in versions],
            [version.number for version in versions],
            [seq for seq, _ in placed],
            [replaced_by.get((version.node_id, version.number)) for version in versions],
            [version.path for version in versions],
            [version.kind for version in versions],
            [version.content_hash for version in versions],
            [version.size for version in versions],
            [version.executable for version in versions],
            [version.mime for version in versions],
            [version.base_number for version in versions],
            [version.merged_number for version in versions],
            [version.sent_hash for version in versions],
        )


def _sides(sides: Sequence[SideVersion]) -> tuple[list[object], ...]:
    return (
        [side.id for side in sides],
        [side.seq for side in sides],
        [side.node_id for side in sides],
        [side.path for side in sides],
        [side.reason for side in sides],
        [side.kind for side in sides],
        [side.content_hash for side in sides],
        [side.size for side in sides],
        [side.executable for side in sides],
        [side.mime for side in sides],
        [side.base_number for side in sides],
    )


def _reviews(reviews: Sequence[NewReview]) -> tuple[list[object], ...]:
    return (
        [review.id for review in reviews],
        [review.side.seq for review in reviews],
        [review.side.node_id for review in reviews],
        [review.side.path for review in reviews],
        [review.author_id for review in reviews],
        [review.reason for review in reviews],
        [review.base_path for review in reviews],
        [review.base_seq for review in reviews],
        [review.side.base_number for review in reviews],
        [review.ours_number for review in reviews],
        [review.side.id for review in reviews],
        [review.conflicts for review in reviews],
    )
