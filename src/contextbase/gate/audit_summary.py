"""The sentence of an audit row: who did what, how it was settled, and why. Pure."""

from collections import Counter
from collections.abc import Sequence
from typing import Final

from contextbase.gate.model import ChangeAction, ChangeAnswer, ChangeStatus, RequestedChange
from contextbase.gate.policy import CRITICAL
from contextbase.gate.trusted import Closing

__all__ = ["summary_of_commit"]

_DID: Final = {
    ChangeAction.WRITE: "wrote",
    ChangeAction.DELETE: "deleted",
    ChangeAction.RENAME: "renamed",
    ChangeAction.MAKE_DIRECTORY: "made the folder",
}


def summary_of_commit(
    who: str, changes: Sequence[RequestedChange], answers: Sequence[ChangeAnswer], closes: Sequence[Closing]
) -> str:
    if len(changes) == 1 == len(answers):
        told = _told_of_one(changes[0], answers[0])
    else:
        counts = Counter(answer.status for answer in answers)
        told = f"committed {len(answers)} changes: "
        told += ", ".join(f"{count} {status.replace('_', ' ')}" for status, count in counts.items())
        if by := sorted({answer.strategy for answer in answers if answer.strategy}):
            told += f"; merged by {', '.join(by)}"
    decided = ", as decided in a review" if closes else ""
    return f"{who} {told}{decided}."


def _told_of_one(change: RequestedChange, answer: ChangeAnswer) -> str:
    did = f"{_DID[change.action]} {change.path}"
    if change.target is not None:
        did += f" to {change.target}"
    return did + _settled(change, answer)


def _settled(change: RequestedChange, answer: ChangeAnswer) -> str:
    by = f" by the strategy '{answer.strategy}'" if answer.strategy else ""
    if answer.status is ChangeStatus.MERGED:
        return f"; it was merged{by}, because the file had changed since commit {change.base}"
    if answer.status is ChangeStatus.UNCHANGED:
        return "; nothing changed, because the head has it already"
    if answer.status is ChangeStatus.SUPERSEDED:
        return f"; the head's version stays{by}, and this one is kept beside it"
    if answer.status is ChangeStatus.REFUSED:
        return f"; it was refused ({answer.code})"
    if answer.status is ChangeStatus.IN_REVIEW:
        because = (
            "the file is critical" if answer.reason == CRITICAL else f"it conflicts with the head ({answer.reason})"
        )
        return f"; it waits for a review, because {because}"
    return ""
