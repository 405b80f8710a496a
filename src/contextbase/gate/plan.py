"""What a batch of requests will do to a project: decided here, in memory; written by the repository in one go.

Pure but for `BatchContents`, which raises `ContentNeeded` when a merge needs bytes that are not loaded yet, and
`ContentUnstored` when it makes what has to be stored first.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from contextbase.audit.model import AuditEntry
from contextbase.gate.audit_summary import summary_of_commit
from contextbase.gate.batch import BatchContents, BatchPlan, ClosedReview, Submitted
from contextbase.gate.leases import Reservations
from contextbase.gate.model import ChangeAnswer, ChangeStatus, CommitAnswer, RequestedChange
from contextbase.gate.outcome import RequestOutcome, Trace
from contextbase.gate.policy import CRITICAL, ProjectPolicy
from contextbase.gate.review_audit import audit_of_closing
from contextbase.gate.settlement import Settlement
from contextbase.gate.trusted import Closing
from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, Seq, TreePath
from contextbase.merge import Merging
from contextbase.storage.model import NewCommit

__all__ = ["Planner"]


class Planner:
    """Settles requests one after the other against a working tree: the result is that of one by one."""

    def __init__(
        self,
        *,
        head: Seq,
        tree: WorkingTree,
        policy: ProjectPolicy,
        contents: BatchContents,
    ) -> None:
        self.plan = BatchPlan()
        self._head = head
        self._tree = tree
        self._policy = policy
        self._contents = contents

    def add(
        self,
        submitted: Submitted,
        bases: Mapping[TreePath, Live],
        authority: PathAuthority,
        reservations: Reservations,
        merging: Merging,
        *,
        at: datetime,
    ) -> set[ContentHash]:
        """Settle one more request; returns the contents it brought. If it raises, the plan is as it was."""
        settlement = Settlement(
            submitted=submitted,
            seq=Seq(self._head + len(self.plan.commits) + 1),
            tree=self._tree,
            bases=bases,
            policy=self._policy,
            authority=authority,
            reservations=reservations,
            contents=self._contents,
            merging=merging,
        )
        atomic = submitted.request.atomic
        if atomic:
            self._tree.remember()
        outcome = settlement.run()
        if atomic and any(answer.status in _NOT_ALL for answer in outcome.answers):
            self._tree.undo()
            outcome = RequestOutcome(answers=[_undone(answer) for answer in outcome.answers])
        self._tree.keep()
        committed = bool(outcome.versions or outcome.sides)
        if committed:
            self.plan.commits.append(
                NewCommit(
                    id=submitted.commit_id,
                    principal_id=submitted.caller.principal.id,
                    way_in=submitted.caller.way_in,
                    message=submitted.request.message,
                    run=submitted.request.run,
                    versions=tuple(outcome.versions),
                )
            )
            self.plan.bare_nodes += outcome.bare_nodes
            self.plan.sides += outcome.sides
            self.plan.reviews += outcome.reviews
            self.plan.stored |= outcome.stored
        head = Seq(self._head + len(self.plan.commits))
        answer = CommitAnswer(seq=head, committed=committed, changes=tuple(outcome.answers))
        self.plan.answers.append(answer)
        if all(change.status in _IS_IN for change in answer.changes):
            self.plan.closings += [
                ClosedReview(
                    id=closing.review_id,
                    state=closing.state,
                    closed_by=submitted.caller.principal.id,
                    seq=head if committed else None,
                )
                for closing in submitted.terms.closes
            ]
            self.plan.audit += [
                audit_of_closing(
                    submitted.caller,
                    closing,
                    seq=head if committed else None,
                    at=at,
                )
                for closing in submitted.terms.closes
            ]
        self.plan.audit.append(_audited(submitted, answer, outcome, at=at))
        return outcome.stored


_IS_IN: Final = frozenset({ChangeStatus.WRITTEN, ChangeStatus.MERGED, ChangeStatus.UNCHANGED})
_NOT_ALL: Final = frozenset({ChangeStatus.REFUSED, ChangeStatus.IN_REVIEW, ChangeStatus.SUPERSEDED})


def _undone(answer: ChangeAnswer) -> ChangeAnswer:
    """An answer within a commit that is not to happen at all."""
    if answer.status is ChangeStatus.REFUSED:
        return answer
    if answer.status is ChangeStatus.IN_REVIEW and answer.reason == CRITICAL:
        reason = f"{answer.path} is critical: it changes through a review only, and the commit is atomic."
        return ChangeAnswer(path=answer.path, status=ChangeStatus.REFUSED, code="forbidden", reason=reason)
    if answer.status in (ChangeStatus.IN_REVIEW, ChangeStatus.SUPERSEDED):
        reason = "It conflicts with the head, and the commit is atomic: nothing was changed."
        return ChangeAnswer(
            path=answer.path, status=ChangeStatus.REFUSED, code="conflict", reason=reason, conflicts=answer.conflicts
        )
    reason = "Another change of this atomic commit could not be made: nothing was changed."
    return ChangeAnswer(path=answer.path, status=ChangeStatus.REFUSED, code="atomic", reason=reason)


def _audited(submitted: Submitted, answer: CommitAnswer, outcome: RequestOutcome, *, at: datetime) -> AuditEntry:
    request, caller = submitted.request, submitted.caller
    only = outcome.traces[0] if len(answer.changes) == 1 and outcome.traces else None
    single = answer.changes[0] if len(answer.changes) == 1 else None
    return AuditEntry(
        at=at,
        by=submitted.caller.actor,
        action="commit",
        summary=summary_of_commit(caller.principal.name, request.changes, answer.changes, submitted.terms.closes),
        path=single.path if single else None,
        node_id=single.node_id if single else None,
        base_seq=submitted.request.changes[0].base if single else None,
        seq=answer.seq if answer.committed else None,
        old_hash=only.old_hash if only else None,
        new_hash=only.new_hash if only else None,
        strategy=_strategy(submitted.terms.closes, single),
        details=_details(request.changes, answer.changes, outcome.traces)
        | ({} if request.message_id is None else {"message_id": request.message_id}),
    )


def _strategy(closes: Sequence[Closing], single: ChangeAnswer | None) -> str | None:
    """How a single change was merged, or how a review was decided that the commit carries out."""
    if closes:
        return closes[0].strategy
    return single.strategy if single else None


def _details(
    changes: Sequence[RequestedChange], answers: Sequence[ChangeAnswer], traces: Sequence[Trace]
) -> dict[str, object]:
    """What the row's own columns do not say: every change of several; of a single one, to where."""
    pairs = list(zip(changes, answers, strict=True))
    if len(pairs) > 1:
        refused = [
            {"action": change.action, "path": change.path, "target": change.target, "status": answer.status}
            for change, answer in pairs
            if answer.status is ChangeStatus.REFUSED
        ]
        return {"changes": [*(trace.as_dict() for trace in traces), *refused]}
    [(change, answer)] = pairs
    details: dict[str, object] = {} if change.target is None else {"target": change.target}
    if answer.result_path not in (None, change.path):
        details["result_path"] = answer.result_path
    return details
