"""Events to questions of agents and people's answers. Pure: each event changes its own question alone, but for a
rewind, which takes questions back. A late answer stays with its question, also when its run is taken back."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Final
from uuid import UUID

from contextbase.agent_vocabulary import QuestionKind, QuestionStatus
from contextbase.conversation.model import SESSION_REWOUND, SessionEvent
from contextbase.conversation.rewind_cut import RewindCut

__all__ = [
    "ANSWERED_LATE",
    "DELIVERED",
    "QUESTION_EVENTS",
    "REQUESTED",
    "RESOLVED",
    "HumanQuestion",
    "HumanResponse",
    "QuestionOption",
    "QuestionRows",
]

REQUESTED: Final = "human_loop.requested"
"""An agent asks: the executor's claim, completed by the server."""

RESOLVED: Final = "human_loop.resolved"
"""Answered, expired or canceled: written by the server alone. An agent could forge its own permission otherwise."""

DELIVERED: Final = "human_loop.delivered"
"""The agent's program has taken the answer: written by the server."""

ANSWERED_LATE: Final = "human_loop.answered_late"
"""Somebody answered a question that had expired, which started another run: written by the server."""

QUESTION_EVENTS: Final = frozenset({REQUESTED, RESOLVED, DELIVERED, ANSWERED_LATE, SESSION_REWOUND})

_LARGEST_CONTEXT: Final = 128 * 1024
_OUTCOMES: Final = {"expired": QuestionStatus.EXPIRED, "canceled": QuestionStatus.CANCELED}


@dataclass(frozen=True, kw_only=True, slots=True)
class QuestionOption:
    value: str
    label: str
    description: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class HumanResponse:
    question_id: str
    run_id: UUID
    answer: Mapping[str, Any]  # values and text, or decision and reason
    responder: str  # such as user:ann
    late_run_id: UUID | None  # the run that a late answer started
    created_at: datetime


@dataclass(frozen=True, kw_only=True, slots=True)
class HumanQuestion:
    question_id: str
    run_id: UUID
    attempt: int
    position: int  # of its event
    kind: QuestionKind
    prompt: str
    options: tuple[QuestionOption, ...]
    multiple: bool  # more than one of the options may be chosen
    context: Mapping[str, Any]
    status: QuestionStatus
    deadline: datetime
    created_at: datetime
    resolved_at: datetime | None = None
    delivered_at: datetime | None = None  # the agent has the answer
    response: HumanResponse | None = None


@dataclass(kw_only=True, slots=True)
class QuestionRows:
    """Questions by their ids, and which of them events have changed. Those that a cut hides go before the changed ones
    are put."""

    questions: dict[str, HumanQuestion] = field(default_factory=dict)
    changed: set[str] = field(default_factory=set)
    cuts: list[RewindCut] = field(default_factory=list)

    def apply(self, event: SessionEvent) -> None:
        if event.kind == SESSION_REWOUND:
            self._rewind(RewindCut.of(event))
        elif event.kind in QUESTION_EVENTS:
            self._change(event)

    def _rewind(self, cut: RewindCut) -> None:
        self.cuts.append(cut)
        self.questions = {name: one for name, one in self.questions.items() if not cut.hides(one)}
        self.changed &= self.questions.keys()

    def _change(self, event: SessionEvent) -> None:
        question_id = str(event.data["question_id"])
        known = self.questions.get(question_id)
        if event.kind == REQUESTED:
            changed = _asked(question_id, event) if known is None else None
        elif known is None:
            changed = None
        elif event.kind == RESOLVED:
            changed = _resolved(known, event)
        elif event.kind == DELIVERED:
            changed = _delivered(known, event)
        else:
            changed = _answered_late(known, event)
        if changed is not None:
            self.questions[question_id] = changed
            self.changed.add(question_id)

    def apply_all(self, events: Iterable[SessionEvent]) -> None:
        for event in events:
            self.apply(event)


def _asked(question_id: str, event: SessionEvent) -> HumanQuestion:
    data: Mapping[str, Any] = event.data
    return HumanQuestion(
        question_id=question_id,
        run_id=event.run_id,
        attempt=event.attempt,
        position=event.number,
        kind=QuestionKind(data["kind"]),
        prompt=data["prompt"],
        options=tuple(
            QuestionOption(value=one["value"], label=one["label"], description=one.get("description", ""))
            for one in data.get("options", ())
        ),
        multiple=bool(data.get("multiple")),
        context=_bounded(data.get("context", {})),
        status=QuestionStatus.PENDING,
        deadline=datetime.fromisoformat(data["deadline"]),
        created_at=event.ts,
    )


def _resolved(question: HumanQuestion, event: SessionEvent) -> HumanQuestion | None:
    """The first resolution counts."""
    if question.status is not QuestionStatus.PENDING:
        return None
    outcome = str(event.data["outcome"])
    if outcome in _OUTCOMES:
        return replace(question, status=_OUTCOMES[outcome], resolved_at=event.ts)
    return replace(
        question, status=QuestionStatus.ANSWERED, resolved_at=event.ts, response=_response(question, event, None)
    )


def _delivered(question: HumanQuestion, event: SessionEvent) -> HumanQuestion | None:
    if question.status is not QuestionStatus.ANSWERED or question.delivered_at is not None:
        return None
    return replace(question, delivered_at=event.ts)


def _answered_late(question: HumanQuestion, event: SessionEvent) -> HumanQuestion | None:
    if question.status is not QuestionStatus.EXPIRED or question.response is not None:
        return None
    return replace(question, response=_response(question, event, UUID(str(event.data["late_run_id"]))))


def _response(question: HumanQuestion, event: SessionEvent, late_run_id: UUID | None) -> HumanResponse:
    answer: Any = event.data["answer"]
    return HumanResponse(
        question_id=question.question_id,
        run_id=question.run_id,
        answer=answer,
        responder=str(event.data["by"]),
        late_run_id=late_run_id,
        created_at=event.ts,
    )


def _bounded(context: Mapping[str, Any]) -> Mapping[str, Any]:
    """The context if a row can hold it, else the beginning of it as text."""
    text = json.dumps(context, ensure_ascii=False)
    return context if len(text) <= _LARGEST_CONTEXT else {"truncated": True, "text": text[:_LARGEST_CONTEXT]}
