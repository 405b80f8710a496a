"""A batch in the making: the head it is made on, the plan so far, and the answers that are known already."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from uuid import UUID

from contextbase.errors import ContextbaseError
from contextbase.gate.batch import BatchContents, BatchPlan, Submitted
from contextbase.gate.leases import ActiveLease, Reservations
from contextbase.gate.model import CommitAnswer
from contextbase.gate.plan import Planner
from contextbase.gate.policy_cache import CachedPolicy
from contextbase.gate.working_tree import WorkingTree
from contextbase.ids import ProjectId, Seq
from contextbase.storage.landing import HeadState

__all__ = ["Draft"]


@dataclass(kw_only=True, slots=True)
class Draft:
    project_id: ProjectId
    head: HeadState  # what it is made on
    tree: WorkingTree  # that head as the draft will leave it
    rules: CachedPolicy
    planner: Planner
    contents: BatchContents
    leases: tuple[ActiveLease, ...] | None = None  # as the draft takes them to be; None: it does not depend on any
    reservations: Reservations
    fresh: list[Submitted] = field(default_factory=list)  # the requests of the plan, in its order
    _answered: dict[UUID, CommitAnswer | ContextbaseError] = field(default_factory=dict)

    @property
    def plan(self) -> BatchPlan:
        return self.planner.plan

    @property
    def next_head(self) -> HeadState:
        """The head once this is written."""
        if not self.plan.commits:
            return self.head
        return replace(self.head, seq=Seq(self.head.seq + len(self.plan.commits)), commit_id=self.plan.commits[-1].id)

    def answer_at_once(self, submitted: Submitted, answer: CommitAnswer | ContextbaseError) -> None:
        """It is no part of the plan: it happened before, or cannot."""
        self._answered[submitted.commit_id] = answer

    def answers(self, batch: Sequence[Submitted]) -> list[CommitAnswer | ContextbaseError]:
        new = {submitted.commit_id: answer for submitted, answer in zip(self.fresh, self.plan.answers, strict=True)}
        return [new.get(submitted.commit_id) or self._answered[submitted.commit_id] for submitted in batch]
