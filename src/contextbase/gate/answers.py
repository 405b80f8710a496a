"""Answers as they are stored for requests that are sent again."""

import base64
import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import UUID

from contextbase.errors import LeaseHeld
from contextbase.gate.model import ChangeAction, ChangeAnswer, ChangeStatus, CommitAnswer, RequestedChange
from contextbase.identity.levels import PathAuthority
from contextbase.ids import NodeId, Seq, TreePath
from contextbase.merge import ContestedPlace, MergeConflict, PlaceKind, Reason

__all__ = [
    "answer_from_json",
    "answer_to_json",
    "conflict_from_dict",
    "conflict_to_dict",
    "conflicts_to_json",
    "seen_by",
    "without_contents",
]

_WORST_FIRST: Final = (
    ChangeStatus.REFUSED,
    ChangeStatus.IN_REVIEW,
    ChangeStatus.SUPERSEDED,
    ChangeStatus.MERGED,
    ChangeStatus.WRITTEN,
    ChangeStatus.UNCHANGED,
)
_OF_FOLDERS: Final = frozenset({ChangeAction.DELETE, ChangeAction.RENAME})

_SIDES = ("base", "ours", "theirs", "suggestion")


def answer_to_json(answer: CommitAnswer) -> str:
    return json.dumps(
        {
            "seq": answer.seq,
            "committed": answer.committed,
            "changes": [_change_to_dict(change) for change in answer.changes],
        }
    )


def answer_from_json(text: str) -> CommitAnswer:
    fields = json.loads(text)
    return CommitAnswer(
        seq=Seq(fields["seq"]),
        committed=fields["committed"],
        changes=tuple(map(_change_from_dict, fields["changes"])),
    )


def seen_by(authority: PathAuthority, answer: CommitAnswer) -> CommitAnswer:
    """What is told when the request is sent again: of places that the caller may not see, with this token or any more,
    only what became of the change."""

    def seen(change: ChangeAnswer) -> ChangeAnswer:
        if authority.shows(change.path, change.result_path or change.path):
            return change
        return ChangeAnswer(path=change.path, status=change.status, code=change.code, reason=change.reason)

    return answer if authority.sees_everything else replace(answer, changes=tuple(map(seen, answer.changes)))


def without_contents(changes: Sequence[RequestedChange], answer: CommitAnswer) -> CommitAnswer:
    """The answer for a caller who may write and not read: one for each change as it was sent, with its status and the
    ids of what was set aside. No contents, names or versions; of a folder, the worst that became of anything in it."""
    return replace(answer, changes=tuple(_status_of(change, answer.changes) for change in changes))


def _status_of(change: RequestedChange, answers: Sequence[ChangeAnswer]) -> ChangeAnswer:
    folder = change.path if change.action in _OF_FOLDERS else None
    about = [
        answer
        for answer in answers
        if answer.path == change.path or (folder is not None and answer.path.is_below(folder))
    ]
    worst = min(about, key=lambda answer: _WORST_FIRST.index(answer.status))
    is_itself = worst.path == change.path
    reason = None
    if worst.status is ChangeStatus.REFUSED:
        reason = worst.reason if is_itself else f"Something in {change.path} was not changed."
        if worst.code == LeaseHeld.code:
            reason = f"{change.path} was not changed: somebody else has a lease there."
    return ChangeAnswer(
        path=change.path,
        status=worst.status,
        side_version_id=worst.side_version_id if is_itself else None,
        review_id=worst.review_id if is_itself else None,
        code=worst.code,
        reason=reason,
    )


def conflict_to_dict(conflict: MergeConflict) -> dict[str, Any]:
    """A conflict object for JSON: text where it is text, base64 where it is not."""
    sides = {name: _side_to_dict(getattr(conflict, name)) for name in _SIDES}
    return {"place": {"kind": conflict.place.kind, "at": conflict.place.at}, "reason": conflict.reason, **sides}


def conflicts_to_json(conflicts: Sequence[MergeConflict]) -> str:
    return json.dumps(list(map(conflict_to_dict, conflicts)))


def _change_to_dict(change: ChangeAnswer) -> dict[str, Any]:
    return {
        "path": change.path,
        "status": change.status,
        "result_path": change.result_path,
        "node_id": None if change.node_id is None else str(change.node_id),
        "number": change.number,
        "strategy": change.strategy,
        "notes": change.notes,
        "side_version_id": None if change.side_version_id is None else str(change.side_version_id),
        "review_id": None if change.review_id is None else str(change.review_id),
        "conflicts": [conflict_to_dict(conflict) for conflict in change.conflicts],
        "code": change.code,
        "reason": change.reason,
    }


def _change_from_dict(fields: dict[str, Any]) -> ChangeAnswer:
    def uuid(name: str) -> UUID | None:
        return None if fields[name] is None else UUID(fields[name])

    node_id = uuid("node_id")
    return ChangeAnswer(
        path=TreePath(fields["path"]),
        status=ChangeStatus(fields["status"]),
        result_path=None if fields["result_path"] is None else TreePath(fields["result_path"]),
        node_id=None if node_id is None else NodeId(node_id),
        number=fields["number"],
        strategy=fields["strategy"],
        notes=tuple(fields["notes"]),
        side_version_id=uuid("side_version_id"),
        review_id=uuid("review_id"),
        conflicts=tuple(map(conflict_from_dict, fields["conflicts"])),
        code=fields["code"],
        reason=fields["reason"],
    )


def conflict_from_dict(fields: dict[str, Any]) -> MergeConflict:
    sides = {name: _side_from_dict(fields[name]) for name in _SIDES}
    place = ContestedPlace(kind=PlaceKind(fields["place"]["kind"]), at=fields["place"]["at"])
    return MergeConflict(place=place, reason=Reason(fields["reason"]), **sides)


def _side_to_dict(content: bytes | None) -> dict[str, str] | None:
    if content is None:
        return None
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _side_from_dict(fields: dict[str, str] | None) -> bytes | None:
    if fields is None:
        return None
    return fields["text"].encode() if "text" in fields else base64.b64decode(fields["base64"])
