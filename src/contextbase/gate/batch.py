"""What a batch is made of: requests with their contents on the way in, rows and answers on the way out."""

from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from contextbase.audit.model import AuditEntry
from contextbase.gate.content_types import BYTES_LOOKED_AT
from contextbase.gate.model import CommitAnswer, CommitRequest, ReviewState
from contextbase.gate.trusted import TrustedTerms
from contextbase.identity.model import Caller
from contextbase.ids import ContentHash, NodeId, PrincipalId, Seq
from contextbase.merge import TooLargeToMerge
from contextbase.storage.landing import NewReview, SideVersion
from contextbase.storage.model import NewCommit

__all__ = ["BatchContents", "BatchPlan", "ClosedReview", "ContentNeeded", "ContentUnstored", "Submitted"]

LARGEST_MERGED: Final = 32 * 1024 * 1024


class ContentNeeded(Exception):
    """A merge needs these bytes: load them and plan again."""

    def __init__(self, content_hash: ContentHash) -> None:
        super().__init__(str(content_hash))
        self.content_hash = content_hash


class ContentUnstored(Exception):
    """A change makes a content that is too large for the commit's own statement: store it and plan again."""

    def __init__(self, content_hash: ContentHash, content: bytes) -> None:
        super().__init__(str(content_hash))
        self.content_hash = content_hash
        self.content = content


@dataclass(kw_only=True, slots=True)
class BatchContents:
    """The bytes that are at hand, and the sizes that are known."""

    limit: int  # from this size on they are stored before the commit's transaction
    loaded: dict[ContentHash, bytes] = field(default_factory=dict)
    sizes: dict[ContentHash, int] = field(default_factory=dict)
    starts: dict[ContentHash, bytes] = field(default_factory=dict)  # the first bytes of what is not loaded
    purged: set[ContentHash] = field(default_factory=set)  # gone for good: nothing can be merged with them
    put: set[ContentHash] = field(default_factory=set)  # the large ones that requests brought or made, and are stored

    def read(self, content_hash: ContentHash) -> bytes:
        if self.sizes.get(content_hash, 0) > LARGEST_MERGED:
            raise TooLargeToMerge(f"It is over {LARGEST_MERGED >> 20} MiB: the last writer's.")
        if content_hash in self.purged:
            raise TooLargeToMerge("What it was made from, or met, was purged: the last writer's.")
        try:
            return self.loaded[content_hash]
        except KeyError:
            raise ContentNeeded(content_hash) from None

    def start_of(self, content_hash: ContentHash) -> bytes | None:
        """The first bytes of a content, if they are at hand."""
        content = self.loaded.get(content_hash)
        return self.starts.get(content_hash) if content is None else content[:BYTES_LOOKED_AT]

    def require_stored(self, content: bytes | None) -> None:
        """Raises `ContentUnstored` for a large content that is not stored yet."""
        if content is not None and len(content) >= self.limit:
            name = ContentHash.of(content)
            if name not in self.put:
                raise ContentUnstored(name, content)

    def add(self, content: bytes) -> ContentHash:
        content_hash = ContentHash.of(content)
        self.loaded[content_hash] = content
        self.sizes[content_hash] = len(content)
        return content_hash


@dataclass(frozen=True, kw_only=True, slots=True)
class Submitted:
    """A request with all that is known of it before it is settled."""

    request: CommitRequest
    terms: TrustedTerms
    caller: Caller
    request_hash: bytes
    commit_id: UUID
    stored: set[ContentHash] = field(default_factory=set)  # the large contents that were stored for it, however often


@dataclass(frozen=True, kw_only=True, slots=True)
class ClosedReview:
    id: UUID
    state: ReviewState
    closed_by: PrincipalId
    seq: Seq | None  # the commit that settled it


@dataclass(kw_only=True, slots=True)
class BatchPlan:
    """Everything a batch writes, in order, and the answers it gives once that is durable."""

    commits: list[NewCommit] = field(default_factory=list)
    bare_nodes: list[tuple[NodeId, Seq]] = field(default_factory=list)  # nodes with a side version only
    sides: list[SideVersion] = field(default_factory=list)
    reviews: list[NewReview] = field(default_factory=list)
    closings: list[ClosedReview] = field(default_factory=list)
    audit: list[AuditEntry] = field(default_factory=list)
    answers: list[CommitAnswer] = field(default_factory=list)
    stored: set[ContentHash] = field(default_factory=set)  # contents at hand that the plan refers to
