"""What the audit trail says of a closed review item, with a commit or without."""

from datetime import datetime
from typing import Final

from contextbase.audit.model import AuditEntry
from contextbase.gate.model import ReviewState
from contextbase.gate.trusted import Closing
from contextbase.identity.model import Caller
from contextbase.ids import Seq

__all__ = ["audit_of_closing"]

_ACTIONS: Final = {
    ReviewState.RESOLVED: ("review.resolve", "resolved"),
    ReviewState.REJECTED: ("review.reject", "rejected"),
    ReviewState.OBSOLETE: ("review.obsolete", "closed"),
}


def audit_of_closing(caller: Caller, closing: Closing, *, seq: Seq | None, at: datetime) -> AuditEntry:
    """`seq`: the commit that settled it, if there was anything to change."""
    action, verb = _ACTIONS[closing.state]
    return AuditEntry(
        at=at,
        by=caller.actor,
        action=action,
        summary=f"{caller.principal.name} {verb} the review of {closing.path}{closing.told}.",
        path=closing.path,
        node_id=closing.node_id,
        seq=seq,
        strategy=closing.strategy,
        details={"review_id": str(closing.review_id)},
    )
