"""Sessions, runs and what was said in them as their wire models."""

from collections.abc import Mapping
from typing import Final, Literal

from contextbase.sessions.model import AgentRun, AgentSession
from contextbase.sessions.questions import AskedQuestion
from contextbase.sessions.rewind import Rewound
from contextbase.sessions.service import RunDetails, SessionDetails
from contextbase.wire.question import QuestionOptionView, QuestionView, ResponseView
from contextbase.wire.session import (
    LandingView,
    OpenedSessionView,
    QueuePlaceView,
    RewoundRun,
    RunUsageView,
    RunView,
    SessionRewoundView,
    SessionView,
    SessionWorkerView,
)

__all__ = [
    "landing_view",
    "opened_session_view",
    "question_view",
    "rewound_view",
    "run_details_view",
    "run_view",
    "session_view",
]

_MICRO: Final = 1_000_000


def session_view(session: AgentSession) -> SessionView:
    return SessionView.model_validate(session)


def opened_session_view(details: SessionDetails) -> OpenedSessionView:
    return OpenedSessionView(
        **dict(session_view(details.session)),
        worker=None if details.worker is None else SessionWorkerView.model_validate(details.worker),
        open_runs=[run_view(run) for run in details.open_runs],
        access=details.standing.access,
        has_terminal=details.standing.has_terminal,
    )


def run_view(run: AgentRun) -> RunView:
    return RunView.model_validate(run)


def run_details_view(details: RunDetails) -> RunView:
    place = None if details.place is None else QueuePlaceView.model_validate(details.place)
    counts = details.usage.counts
    usage = RunUsageView(
        requests=details.usage.requests,
        input_tokens=counts.input,
        output_tokens=counts.output,
        cache_read_tokens=counts.cache_read,
        cache_write_tokens=counts.cache_write,
        cost=details.usage.cost / _MICRO,
    )
    return run_view(details.run).model_copy(update={"place": place, "usage": usage})


def landing_view(report: Mapping[str, object]) -> LandingView:
    return LandingView.model_validate(report)


def rewound_view(rewound: Rewound) -> SessionRewoundView:
    point = rewound.point
    runs = [
        RewoundRun(
            id=run.id, prompt=run.prompt, landed_seq=None if run.landed is None else landing_view(run.landed).seq
        )
        for run in rewound.hidden
    ]
    memory: Literal["resumed", "rebuilt", "empty"] = "empty"
    if not point.is_start:
        memory = "rebuilt" if point.snapshot is None else "resumed"
    return SessionRewoundView(
        session_id=point.run.session_id, prompt=point.prompt, memory=memory, files=rewound.with_files, runs=runs
    )


def question_view(asked: AskedQuestion) -> QuestionView:
    question = asked.question
    return QuestionView(
        question_id=question.question_id,
        session_id=asked.session_id,
        run_id=question.run_id,
        attempt=question.attempt,
        position=question.position,
        kind=question.kind,
        prompt=question.prompt,
        options=[QuestionOptionView.model_validate(option) for option in question.options],
        multiple=question.multiple,
        context=dict(question.context),
        status=question.status,
        deadline=question.deadline,
        created_at=question.created_at,
        resolved_at=question.resolved_at,
        delivered_at=question.delivered_at,
        response=None if question.response is None else ResponseView.model_validate(question.response),
    )
