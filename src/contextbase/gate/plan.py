"""What a batch of requests will do to a project: decided here, in memory; written by the repository in one go.

Pure but for `Contents`, which raises `ContentNeeded` when a merge needs bytes that are not loaded yet.
"""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from contextbase.audit.model import AuditEntry
from contextbase.gate.batch import BatchPlan, Contents, Submitted
from contextbase.gate.model import Change, ChangeAnswer, ChangeStatus, CommitAnswer
from contextbase.gate.policy import ProjectPolicy
from contextbase.gate.settlement import Outcome, Settlement
from contextbase.gate.working_tree import Live, WorkingTree
from contextbase.identity.levels import PathAuthority
from contextbase.ids import ContentHash, Seq, TokenId, TreePath
from contextbase.storage.model import NewCommit

__all__ = ["Planner"]


class Planner:
    """Settles requests one after the other against a working tree: the result is that of one by one."""

    def __init__(
        self,
        *,
        tree: WorkingTree,
        bases: Mapping[tuple[TreePath, Seq], Live],
        policy: ProjectPolicy,
        authorities: Mapping[TokenId, PathAuthority],
        contents: Contents,
        now: datetime,
    ) -> None:
        self._tree = tree
        self._bases = bases
        self._policy = policy
        self._authorities = authorities
        self._contents = contents
        self._now = now
        self._plan = BatchPlan()

    def plan(self, batch: Sequence[Submitted]) -> BatchPlan:
        for submitted in batch:
            self._settle(submitted)
        return self._plan

    def _settle(self, submitted: Submitted) -> None:
        seq = Seq(self._tree.seq + len(self._plan.commits) + 1)
        saved = self._tree.saved() if submitted.request.atomic else None
        outcome = Settlement(
            submitted=submitted,
            seq=seq,
            tree=self._tree,
            bases=self._bases,
            policy=self._policy,
            authority=self._authorities[submitted.caller.token.id],
            contents=self._contents,
        ).run()
        if saved is not None and any(answer.status in _NOT_ALL for answer in outcome.answers):
            self._tree = saved
            outcome = Outcome(answers=[_undone(answer) for answer in outcome.answers])
        committed = bool(outcome.versions or outcome.sides)
        if committed:
            self._plan.commits.append(
                NewCommit(
                    id=submitted.commit_id,
                    principal_id=submitted.caller.principal.id,
                    operator_type=submitted.operator_type,
                    message=submitted.request.message,
                    versions=tuple(outcome.versions),
                )
            )
            self._plan.bare_nodes += outcome.bare_nodes
            self._plan.sides += outcome.sides
            self._plan.reviews += outcome.reviews
            self._plan.stored |= outcome.stored
        head = Seq(self._tree.seq + len(self._plan.commits))
        answer = CommitAnswer(seq=head, committed=committed, changes=tuple(outcome.answers))
        self._plan.answers.append(answer)
        self._plan.audit.append(_audited(submitted, answer, outcome, at=self._now))


_NOT_ALL: Final = frozenset({ChangeStatus.REFUSED, ChangeStatus.IN_REVIEW, ChangeStatus.SUPERSEDED})


def _undone(answer: ChangeAnswer) -> ChangeAnswer:
    """An answer within a commit that is not to happen at all."""
    if answer.status is ChangeStatus.REFUSED:
        return answer
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
        old_hash=ContentHash.parse(str(only["old_hash"])) if only and only["old_hash"] else None,
        new_hash=ContentHash.parse(str(only["new_hash"])) if only and only["new_hash"] else None,
        strategy=single.strategy if single else None,
        origin=submitted.caller.origin,
        trace_id=submitted.caller.trace_id,
        details=_details(submitted.request.changes, answer.changes, outcome.traces),
    )


def _details(
    changes: Sequence[Change], answers: Sequence[ChangeAnswer], traces: Sequence[dict[str, object]]
) -> dict[str, object]:
    """What the row's own columns do not say: every change of several; of a single one, to where."""
    pairs = list(zip(changes, answers, strict=True))
    if len(pairs) > 1:
        refused = [
            {"action": change.action, "path": change.path, "target": change.target, "status": answer.status}
            for change, answer in pairs
            if answer.status is ChangeStatus.REFUSED
        ]
        return {"changes": [*traces, *refused]}
    [(change, answer)] = pairs
    details: dict[str, object] = {} if change.target is None else {"target": change.target}
    if answer.result_path not in (None, change.path):
        details["result_path"] = answer.result_path
    return details
