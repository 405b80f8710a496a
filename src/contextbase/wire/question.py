"""Bodies of what agents ask people, and of the answers."""

from datetime import datetime
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from contextbase.agent_vocabulary import PermissionDecision, QuestionKind, QuestionStatus
from contextbase.wire.answer import AnswerView

__all__ = ["QuestionOptionView", "QuestionPage", "QuestionReplyBody", "QuestionView", "ResponseView"]


class QuestionReplyBody(BaseModel):
    model_config = ConfigDict(extra="forbid")

    values: list[str] = Field([], description="To a question: values of its options.", max_length=100)
    text: str | None = Field(None, description="To a question: in your own words.", max_length=65_536)
    decision: PermissionDecision | None = Field(None, description="To a permission.")
    reason: str | None = Field(None, description="Why it is denied; the agent is told.", max_length=65_536)


class QuestionOptionView(AnswerView):
    value: str
    label: str
    description: str


class ResponseView(AnswerView):
    answer: dict[str, Any] = Field(description="`values` and `text`, or `decision` and `reason`.")
    responder: str = Field(description="Who answered, such as user:ann.")
    late_run_id: UUID | None = Field(description="The run that this answer started, because it came late.")
    created_at: datetime


class QuestionView(AnswerView):
    question_id: str
    session_id: UUID
    run_id: UUID
    attempt: int
    position: int = Field(description="Its place in the session.")
    kind: QuestionKind
    prompt: str
    options: list[QuestionOptionView]
    multiple: bool = Field(description="More than one of the options may be chosen.")
    context: dict[str, Any] = Field(
        description="What it is about: of a permission the tool, its input, and the diff that it would make."
    )
    status: QuestionStatus
    deadline: datetime = Field(description="When it expires.")
    created_at: datetime
    resolved_at: datetime | None
    delivered_at: datetime | None = Field(description="When the agent got the answer.")
    response: ResponseView | None


class QuestionPage(BaseModel):
    questions: list[QuestionView]
    next_before: str | None = Field(description="Pass as `before` for the next page; null on the last.")
