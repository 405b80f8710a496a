"""What a batch of requests will do to a project: decided here, in memory; written by the repository in one go.

Pure but for `Contents`, which raises `ContentNeeded` when a merge needs bytes that are not loaded yet.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from contextbase.audit.model import AuditEntry
from contextbase.gate.batch import BatchPlan, ClosedReview, Contents, Submitted
from contextbase.gate.closing import audit_of_closing
from contextbase.gate.leases import Reservations
from contextbase.gate.model import Change, ChangeAnswer, ChangeStatus, CommitAnswer
from contextbase.gate.policy import CRITICAL, ProjectPolicy
from contextbase.gate.settlement import Outcome, Settlement, Trace
from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, Seq, TreePath
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
        contents: Contents,
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
        )
        atomic = submitted.request.atomic
        if atomic:
            self._tree.remember()
        outcome = settlement.run()
        if atomic and any(answer.status in _NOT_ALL for answer in outcome.answers):
            self._tree.undo()
            outcome = Outcome(answers=[_undone(answer) for answer in outcome.answers])
        self._tree.keep()
        committed = bool(outcome.versions or outcome.sides)
        if committed:
            self.plan.commits.append(
                NewCommit(
                    id=submitted.commit_id,
                    principal_id=submitted.caller.principal.id,
                    operator_type=submitted.operator_type,
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
                for closing in submitted.request.closes
            ]
            self.plan.audit += [
                audit_of_closing(
                    submitted.caller,
                    closing,
                    operator_type=submitted.operator_type,
                    seq=head if committed else None,
                    at=at,
                )
                for closing in submitted.request.closes
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


def _audited(submitted: Submitted, answer: CommitAnswer, outcome: Outcome, *, at: datetime) -> AuditEntry:
    counts: dict[str, int] = {}
    for change in answer.changes:
        counts[change.status] = counts.get(change.status, 0) + 1
    told = ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
    only = outcome.traces[0] if len(answer.changes) == 1 and outcome.traces else None
    single = answer.changes[0] if len(answer.changes) == 1 else None
    return AuditEntry(
        at=at,
        operator_type=submitted.operator_type,
        principal_id=submitted.caller.principal.id,
        token_id=submitted.caller.token.id,
        action="commit",
        summary=f"{submitted.caller.principal.name} committed {len(answer.changes)} changes: {told}.",
        path=single.path if single else None,
        node_id=single.node_id if single else None,
        base_seq=submitted.request.changes[0].base if single else None,
        seq=answer.seq if answer.committed else None,
        old_hash=only.old_hash if only else None,
        new_hash=only.new_hash if only else None,
        strategy=single.strategy if single else None,
        origin=submitted.caller.origin,
        trace_id=submitted.caller.trace_id,
        details=_details(submitted.request.changes, answer.changes, outcome.traces),
    )


def _details(changes: Sequence[Change], answers: Sequence[ChangeAnswer], traces: Sequence[Trace]) -> dict[str, object]:
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
