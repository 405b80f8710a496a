"""What became of one request, and what each of its changes did."""

from dataclasses import dataclass, field

from contextbase.gate.model import ChangeAnswer, ChangeStatus, RequestedChange
from contextbase.ids import ContentHash, NodeId, Seq, TreePath
from contextbase.storage.landing import NewReview, SideVersion
from contextbase.storage.model import NewVersion

__all__ = ["RequestOutcome", "Trace"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Trace:
    """What a change did, for the audit row."""

    change: RequestedChange
    status: ChangeStatus
    result_path: TreePath
    node_id: NodeId | None
    old_hash: ContentHash | None
    new_hash: ContentHash | None
    strategy: str | None

    def as_dict(self) -> dict[str, object]:
        path = self.change.path
        return {
            "action": self.change.action,
            "path": path,
            "target": self.change.target,
            "result_path": self.result_path if self.result_path != path else None,
            "status": self.status,
            "node_id": str(self.node_id) if self.node_id else None,
            "base_seq": self.change.base,
            "old_hash": str(self.old_hash) if self.old_hash else None,
            "new_hash": str(self.new_hash) if self.new_hash else None,
            "strategy": self.strategy,
        }


@dataclass(kw_only=True, slots=True)
class RequestOutcome:
    answers: list[ChangeAnswer] = field(default_factory=list)
    versions: list[NewVersion] = field(default_factory=list)
    bare_nodes: list[tuple[NodeId, Seq]] = field(default_factory=list)
    sides: list[SideVersion] = field(default_factory=list)
    reviews: list[NewReview] = field(default_factory=list)
    stored: set[ContentHash] = field(default_factory=set)
    traces: list[Trace] = field(default_factory=list)  # of what was not refused
