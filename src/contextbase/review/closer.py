"""Where items are closed: with a commit through the gate, or without one."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from contextbase.audit.repository import AuditRepository
from contextbase.db.database import Connection, Database
from contextbase.errors import Conflict, Forbidden
from contextbase.gate.batch import ClosedReview
from contextbase.gate.model import ChangeAnswer, ChangeStatus, CommitRequest, RequestedChange, ReviewState
from contextbase.gate.repository import GateRepository
from contextbase.gate.review_audit import audit_of_closing
from contextbase.gate.service import Gate
from contextbase.gate.trusted import Closing, TrustedTerms
from contextbase.identity.model import Caller
from contextbase.ids import Clock, ProjectId
from contextbase.review.assessment import Assessment
from contextbase.review.model import ReviewItem
from contextbase.review.repository import ReviewRepository

__all__ = ["ReviewCloser", "Settling"]


@dataclass(frozen=True, kw_only=True, slots=True)
class Settling:
    """How an item came to its end, for the audit trail."""

    strategy: str
    told: str  # a part of a sentence


@dataclass(frozen=True, kw_only=True, slots=True)
class ReviewCloser:
    database: Database
    gate: Gate
    repository: GateRepository
    audit: AuditRepository
    clock: Clock
    hint: Callable[[ProjectId], None] = lambda _: None  # told when the feed has something new
    _reviews: ReviewRepository = field(init=False, default_factory=ReviewRepository)

    async def close(
        self,
        caller: Caller,
        project_id: ProjectId,
        item: ReviewItem,
        state: ReviewState,
        *,
        how: Settling,
    ) -> None:
        """Close it, nothing changed; raises `Conflict` if it is not open any more."""
        async with self.database.transaction() as connection:
            await self._reviews.hold_project(connection, project_id)
            await self.close_within(connection, caller, project_id, item, state, how=how)
        self.hint(project_id)

    async def close_within(
        self,
        connection: Connection,
        caller: Caller,
        project_id: ProjectId,
        item: ReviewItem,
        state: ReviewState,
        *,
        how: Settling,
    ) -> None:
        """As `close`, in the caller's transaction, which holds the project."""
        closed = ClosedReview(id=item.id, state=state, closed_by=caller.principal.id, seq=None)
        await self.repository.close_reviews(connection, project_id, [closed])
        closing = _closing(item, state, how)
        entry = audit_of_closing(caller, closing, seq=None, at=self.clock.now())
        await self.audit.append(connection, project_id, [entry])

    async def commit(
        self,
        caller: Caller,
        project_id: ProjectId,
        standing: Assessment,
        changes: Sequence[RequestedChange],
        *,
        message: str,
        state: ReviewState,
        how: Settling,
    ) -> None:
        """Commit the changes, made from the head the standing is about, and close the item: both or neither. Raises
        `Forbidden`, or `Conflict` if they conflict with what the head has become, or it is not open any more."""
        item = standing.item
        request = CommitRequest(
            project_id=project_id,
            epoch=standing.epoch,
            changes=tuple(changes),
            message=message,
            atomic=True,
        )
        terms = TrustedTerms(closes=(_closing(item, state, how),))
        answer = await self.gate.commit_trusted(caller, request, terms)
        refused = [change for change in answer.changes if change.status is ChangeStatus.REFUSED]
        if refused:
            raise _refusal(item, refused)


def _closing(item: ReviewItem, state: ReviewState, how: Settling) -> Closing:
    return Closing(
        review_id=item.id, path=item.path, node_id=item.node_id, state=state, strategy=how.strategy, told=how.told
    )


def _refusal(item: ReviewItem, refused: Sequence[ChangeAnswer]) -> Forbidden | Conflict:
    forbidden = next((change for change in refused if change.code == "forbidden"), None)
    if forbidden is not None:
        return Forbidden(forbidden.reason or f"You may not change {item.path}.")
    return Conflict(f"{item.path} was changed since, in the very places this is about; look at the review item again.")
